//! `down`: ends what `up` started, by telling its keeper.

use std::time::Duration;

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use sindri_cluster::program::say;
use sindri_cluster::registry::{Record, Registry};
use sindri_cluster::{ClusterError, Home, Stop};

/// Longer than any cluster takes to end.
const DOWN_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Which clusters.
#[derive(Args)]
pub struct Which {
    /// Its name [default: the one that runs].
    name: Option<String>,
    /// Every cluster.
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

pub fn down(home: &Home, which: &Which, stop: &Stop) -> Result<(), ClusterError> {
    let registry = Registry::new(home);
    for record in choose(registry.list()?, which)? {
        if record.is_alive() {
            end(&record, stop)?;
        } else {
            // A keeper that was killed could not do this itself.
            registry.remove(&record.name, false);
        }
        say(format!("{} is ended", record.name));
    }
    Ok(())
}

fn choose(records: Vec<Record>, which: &Which) -> Result<Vec<Record>, ClusterError> {
    let names: Vec<String> = records.iter().map(|record| record.name.clone()).collect();
    match (&which.name, which.all, records.len()) {
        (Some(name), _, _) => {
            let chosen: Vec<Record> = records.into_iter().filter(|record| record.name == *name).collect();
            if chosen.is_empty() { Err(mistake(format!("there is no cluster {name:?}"))) } else { Ok(chosen) }
        }
        (None, true, _) | (None, false, 1) => Ok(records),
        (None, false, 0) => Err(mistake("no cluster runs".to_owned())),
        (None, false, _) => Err(mistake(format!("which one? {}; or --all", names.join(", ")))),
    }
}

fn mistake(words: String) -> ClusterError {
    ClusterError::Mistake(words)
}

fn end(record: &Record, stop: &Stop) -> Result<(), ClusterError> {
    let id = i32::try_from(record.keeper).ok().and_then(Pid::from_raw);
    let id = id.ok_or_else(|| mistake(format!("{} has no keeper that could be told", record.name)))?;
    kill_process(id, Signal::TERM)
        .map_err(|error| mistake(format!("{} cannot be told to end: {error}", record.name)))?;
    let mut waited = Duration::ZERO;
    while record.is_alive() {
        if stop.is_set() {
            return Err(ClusterError::Interrupted);
        }
        if waited >= DOWN_MAX {
            return Err(mistake(format!("{} has not ended within {DOWN_MAX:?}", record.name)));
        }
        pause();
        waited += LOOK_EVERY;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the binary is where real time comes in")]
fn pause() {
    std::thread::sleep(LOOK_EVERY);
}
