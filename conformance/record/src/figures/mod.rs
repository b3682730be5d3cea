//! The baseline that a simulated API server is compared with: how fast the real one starts, what it costs in memory, and
//! how many requests a second it answers.
//!
//! No figure has a bar: they say how things are on this machine.

pub mod load;
pub mod memory;

use std::time::Instant;

use sindri_cluster::{Cluster, Options, Provider, Stop};
use sindri_figures::{Bar, Sheet, median};

use crate::session::{SessionError, asked_to_end, target_of};

/// The area that they belong to.
pub const AREA: &str = "cluster";
/// Starts whose median counts.
const STARTS: usize = 5;
const CONNECTIONS: [usize; 2] = [1, 8];

/// Measures everything on clusters of this kind. The first start of all is not counted: it may have to build.
pub fn measure(provider: &dyn Provider, stop: &Stop, sheet: &mut Sheet) -> Result<(), SessionError> {
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
    sheet.add("start to ready, median of 5, warm", median(seconds), "s", Bar::None);
    match last {
        Some(cluster) => measure_running(cluster.as_ref(), stop, sheet),
        None => Ok(()),
    }
}

fn measure_running(cluster: &dyn Cluster, stop: &Stop, sheet: &mut Sheet) -> Result<(), SessionError> {
    match memory::of_processes(&cluster.processes()) {
        Ok(parts) => {
            for (name, megabytes) in &parts {
                sheet.add(&format!("memory of {name}"), *megabytes, "MB", Bar::None);
            }
            let all = parts.iter().map(|(_, megabytes)| megabytes).sum();
            sheet.add("memory of all its processes", all, "MB", Bar::None);
        }
        Err(reason) => sheet.add_missing("memory of all its processes", &reason),
    }
    let target = target_of(cluster)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for kind in load::ALL {
        for connections in CONNECTIONS {
            let rate = runtime.block_on(async {
                tokio::select! {
                    biased; // whoever asks for the end gets it
                    () = asked_to_end(stop) => Err("interrupted".to_owned()),
                    rate = load::rate(&target, kind, connections) => rate.map_err(|error| error.to_string()),
                }
            });
            let name = format!("{kind}, {connections} connection{}", if connections == 1 { "" } else { "s" });
            match rate {
                Ok(rate) => sheet.add(&name, rate, "per s", Bar::None),
                Err(reason) => sheet.add_missing(&name, &reason),
            }
        }
    }
    Ok(())
}

/// The real time.
#[expect(clippy::disallowed_methods, reason = "figures are about real time")]
pub fn now() -> Instant {
    Instant::now()
}
