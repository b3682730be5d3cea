//! The simulated API server as a process on a port.

use bytes::Bytes;
use http_body_util::Full;
use serde_json::json;
use sindri_cluster::{Options, Provider};
use sindri_record::connection::Connection;
use sindri_record::session::cluster_target;
use sindri_record::target::Target;

use super::state::{OBJECTS, VALUE_BYTES};
use crate::clock::now;
use crate::figures::{Bar, Figures, median};
use crate::process_memory;
use crate::request_rate::{self, RepeatedRequest};

/// Number of measured starts.
const STARTS: usize = 5;
const START_BAR: Bar = Bar::AtMost(100.0);
const MEMORY_BAR: Bar = Bar::AtMost(200.0);

/// Measures starts and memory, and returns the applies per second over one connection.
pub fn measure(provider: &dyn Provider, options: &Options, figures: &mut Figures) -> Result<f64, String> {
    let mut starts = Vec::new();
    let mut last = None;
    for _ in 0..STARTS {
        drop(last.take());
        let began = now();
        last = Some(provider.start(options).map_err(to_message)?);
        starts.push((now() - began).as_secs_f64() * 1e3);
    }
    figures.add("start to ready on a port, median of 5", median(starts), "ms", START_BAR);
    let cluster = last.ok_or("it was never started")?;
    let target = cluster_target(&*cluster).map_err(to_message)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(to_message)?;
    runtime.block_on(create_objects(&target))?;
    // First of all: the server keeps a history of changes for a while, which would be measured too.
    let parts = process_memory::proportional(&cluster.processes())?;
    let megabytes = parts.iter().map(|(_, megabytes)| megabytes).sum();
    figures.add(&format!("memory with {OBJECTS} objects"), megabytes, "MB", MEMORY_BAR);
    runtime.block_on(request_rate::measure(&target, RepeatedRequest::ApplyChange, 1)).map_err(to_message)
}

async fn create_objects(target: &Target) -> Result<(), String> {
    let mut connection = Connection::open(target).await.map_err(to_message)?;
    for number in 0..OBJECTS {
        let name = format!("object-{number}");
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"rest": "x".repeat(VALUE_BYTES)},
        });
        let path = format!("/api/v1/namespaces/default/configmaps/{name}?fieldManager=bench");
        let request =
            target.administrator_request("PATCH", &path).header("Content-Type", "application/apply-patch+yaml");
        let request = request.body(Full::new(Bytes::from(object.to_string()))).map_err(to_message)?;
        let response = connection.send(request).await.map_err(to_message)?;
        if !response.is_success() {
            return Err(format!("the server answered {} to an apply of {name}", response.status));
        }
    }
    Ok(())
}

fn to_message(error: impl std::fmt::Display) -> String {
    error.to_string()
}
