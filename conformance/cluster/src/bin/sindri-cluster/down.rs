//! `down`: ends clusters that `up` started, with a signal to their keepers.

use std::time::Duration;

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use sindri_cluster::program::print_line;
use sindri_cluster::registry::{ClusterRecord, Registry};
use sindri_cluster::{ClusterError, Home, Stop};

/// Longer than any cluster takes to end.
const DOWN_MAX: Duration = Duration::from_secs(60);
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Flags of `down`.
#[derive(Args)]
pub struct DownFlags {
    /// Name of the cluster [default: the only one that runs].
    name: Option<String>,
    /// All clusters.
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

pub fn down(home: &Home, flags: &DownFlags, stop: &Stop) -> Result<(), ClusterError> {
    let registry = Registry::new(home);
    for record in choose(registry.list()?, flags)? {
        if record.is_alive() {
            stop_cluster(&record, stop)?;
        } else {
            // A keeper that was killed has not removed its record.
            registry.remove(&record.name, false);
        }
        print_line(format!("{} is ended", record.name));
    }
    Ok(())
}

fn choose(records: Vec<ClusterRecord>, flags: &DownFlags) -> Result<Vec<ClusterRecord>, ClusterError> {
    let names: Vec<String> = records.iter().map(|record| record.name.clone()).collect();
    match (&flags.name, flags.all, records.len()) {
        (Some(name), _, _) => {
            let chosen: Vec<ClusterRecord> = records.into_iter().filter(|record| record.name == *name).collect();
            if chosen.is_empty() { Err(usage(format!("there is no cluster {name:?}"))) } else { Ok(chosen) }
        }
        (None, true, _) | (None, false, 1) => Ok(records),
        (None, false, 0) => Err(usage("no cluster runs".to_owned())),
        (None, false, _) => Err(usage(format!("several clusters run: name one of {}, or use --all", names.join(", ")))),
    }
}

fn usage(message: String) -> ClusterError {
    ClusterError::Usage(message)
}

fn stop_cluster(record: &ClusterRecord, stop: &Stop) -> Result<(), ClusterError> {
    let id = i32::try_from(record.keeper).ok().and_then(Pid::from_raw);
    let id = id.ok_or_else(|| usage(format!("{} has no valid process id", record.name)))?;
    kill_process(id, Signal::TERM)
        .map_err(|error| usage(format!("the keeper of {} cannot be signalled: {error}", record.name)))?;
    let mut waited = Duration::ZERO;
    while record.is_alive() {
        if stop.is_set() {
            return Err(ClusterError::Interrupted);
        }
        if waited >= DOWN_MAX {
            return Err(usage(format!("{} has not ended within {DOWN_MAX:?}", record.name)));
        }
        pause();
        waited += CHECK_INTERVAL;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the binary is where real time comes in")]
fn pause() {
    std::thread::sleep(CHECK_INTERVAL);
}
