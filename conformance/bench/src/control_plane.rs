//! Figures of the real control plane: time to start, memory, and requests per second. The simulated API server is compared with
//! them.
//!
//! No figure has a bar: they describe this machine.

use sindri_cluster::{Cluster, Options, Provider, Stop};
use sindri_record::session::{SessionError, cluster_target, wait_for_stop};

use crate::clock::now;
use crate::figures::{Bar, Figures, median};
use crate::process_memory;
use crate::request_rate::{self, RepeatedRequest};

/// Number of measured starts.
const STARTS: usize = 5;
const CONNECTIONS: [usize; 2] = [1, 8];

/// Measures clusters of this provider. The very first start is not counted: it may have to build the control plane.
pub fn measure(provider: &dyn Provider, stop: &Stop, figures: &mut Figures) -> Result<(), SessionError> {
    let options = Options { stop: stop.clone(), ..Options::default() };
    drop(provider.start(&options)?);
    let mut seconds = Vec::new();
    let mut last = None;
    for _ in 0..STARTS {
        drop(last.take());
        let began = now();
        last = Some(provider.start(&options)?);
        seconds.push((now() - began).as_secs_f64());
    }
    figures.add("start to ready, median of 5, warm", median(seconds), "s", Bar::None);
    match last {
        Some(cluster) => measure_running(cluster.as_ref(), stop, figures),
        None => Ok(()),
    }
}

fn measure_running(cluster: &dyn Cluster, stop: &Stop, figures: &mut Figures) -> Result<(), SessionError> {
    match process_memory::proportional(&cluster.processes()) {
        Ok(parts) => {
            for (name, megabytes) in &parts {
                figures.add(&format!("memory of {name}"), *megabytes, "MB", Bar::None);
            }
            let all = parts.iter().map(|(_, megabytes)| megabytes).sum();
            figures.add("memory of all its processes", all, "MB", Bar::None);
        }
        Err(reason) => figures.add_missing("memory of all its processes", &reason),
    }
    let target = cluster_target(cluster)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for request in RepeatedRequest::ALL {
        for connections in CONNECTIONS {
            let rate = runtime.block_on(async {
                tokio::select! {
                    biased; // a stop counts even while requests are sent
                    () = wait_for_stop(stop) => Err("interrupted".to_owned()),
                    rate = request_rate::measure(&target, request, connections) => rate.map_err(|error| error.to_string()),
                }
            });
            let name = format!("{request}, {connections} connection{}", if connections == 1 { "" } else { "s" });
            match rate {
                Ok(rate) => figures.add(&name, rate, "per s", Bar::None),
                Err(reason) => figures.add_missing(&name, &reason),
            }
        }
    }
    Ok(())
}
