//! The same server as a process on a port.

use bytes::Bytes;
use http_body_util::Full;
use serde_json::json;
use sindri_cluster::{Options, Provider};
use sindri_figures::{Bar, Sheet, median};
use sindri_record::connection::Connection;
use sindri_record::figures::load::{Kind, rate};
use sindri_record::figures::{memory, now};
use sindri_record::session::target_of;
use sindri_record::target::Target;

use super::{OBJECTS, VALUE_BYTES, runtime, words};

/// Starts whose median counts.
const STARTS: usize = 5;
const START_BAR: Bar = Bar::AtMost(100.0);
const MEMORY_BAR: Bar = Bar::AtMost(200.0);

/// Measures starts and memory; tells the applies a second over one connection.
pub fn measure(provider: &dyn Provider, options: &Options, sheet: &mut Sheet) -> Result<f64, String> {
    let mut starts = Vec::new();
    let mut last = None;
    for _ in 0..STARTS {
        drop(last.take());
        let began = now();
        last = Some(provider.start(options).map_err(words)?);
        starts.push((now() - began).as_secs_f64() * 1e3);
    }
    sheet.add("start to ready on a port, median of 5", median(starts), "ms", START_BAR);
    let cluster = last.ok_or("it was never started")?;
    let target = target_of(&*cluster).map_err(words)?;
    let runtime = runtime()?;
    runtime.block_on(fill(&target))?;
    // Before anything else: a history of changes, which is kept for a while, would be measured too.
    let parts = memory::of_processes(&cluster.processes())?;
    let megabytes = parts.iter().map(|(_, megabytes)| megabytes).sum();
    sheet.add(&format!("memory with {OBJECTS} objects"), megabytes, "MB", MEMORY_BAR);
    runtime.block_on(rate(&target, Kind::ApplyChange, 1)).map_err(words)
}

async fn fill(target: &Target) -> Result<(), String> {
    let mut connection = Connection::open(target).await.map_err(words)?;
    for number in 0..OBJECTS {
        let name = format!("object-{number}");
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"rest": "x".repeat(VALUE_BYTES)},
        });
        let path = format!("/api/v1/namespaces/default/configmaps/{name}?fieldManager=bench");
        let request =
            target.administrator_request("PATCH", &path).header("Content-Type", "application/apply-patch+yaml");
        let request = request.body(Full::new(Bytes::from(object.to_string()))).map_err(words)?;
        let answer = connection.send(request).await.map_err(words)?;
        if !answer.is_success() {
            return Err(format!("{name} is answered with {}", answer.status));
        }
    }
    Ok(())
}
