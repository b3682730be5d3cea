//! `up`: starts a cluster that stays.

use std::process::Command;
use std::time::Duration;

use sindri_cluster::leashed::{Heard, Leashed};
use sindri_cluster::program::{pass_on, say};
use sindri_cluster::registry::Record;
use sindri_cluster::{ClusterError, Home, ProviderName, Stop};

use crate::Wanted;
use crate::hold::KEEP;

/// Longer than any build takes; a kind of cluster has bounds of its own.
const UP_MAX: Duration = Duration::from_secs(3600);

pub fn up(home: &Home, wanted: &Wanted, stop: &Stop) -> Result<(), ClusterError> {
    // What the user can put right is said here, and not by a process in the background.
    wanted.provider(home)?;
    let own = std::env::current_exe().map_err(|error| ClusterError::Mistake(error.to_string()))?;
    let mut command = Command::new(own);
    command.arg("hold").args(["--cluster", &wanted.cluster.to_string(), "--version", &wanted.version.to_string()]);
    command.args(wanted.pristine.then_some("--pristine"));
    command.args(wanted.keep.then_some("--keep"));
    command.args(wanted.port.map(|port| format!("--port={port}")));
    command.args(wanted.name.as_ref().map(|name| format!("--name={name}")));
    let started = Leashed::start(&mut command);
    let mut keeper = started.map_err(|error| ClusterError::Mistake(format!("cannot start: {error}")))?;
    let record = await_ready(&mut keeper, stop)?;
    keeper.tell(KEEP).map_err(|error| ClusterError::Mistake(format!("{} is gone: {error}", record.name)))?;
    keeper.release();
    report(&record, wanted.cluster);
    Ok(())
}

/// Passes on what the keeper says until the cluster works. A keeper that ends has said why; its exit code is ours.
fn await_ready(keeper: &mut Leashed, stop: &Stop) -> Result<Record, ClusterError> {
    loop {
        match keeper.hear(UP_MAX, stop)? {
            Heard::Line(line) => match line.strip_prefix("READY ").map(serde_json::from_str) {
                Some(Ok(record)) => return Ok(record),
                Some(Err(_)) | None => pass_on(&line),
            },
            Heard::Ended(status) => std::process::exit(status.code().unwrap_or(1)),
            Heard::Nothing => return Err(ClusterError::Mistake(format!("no cluster within {UP_MAX:?}"))),
        }
    }
}

/// For people, and for a shell that evaluates it.
fn report(record: &Record, provider: ProviderName) {
    say(format!("# {} is up: Kubernetes {} ({provider}) at {}", record.name, record.version, record.server));
    say(format!("export KUBECONFIG={}", record.kubeconfig.display()));
}
