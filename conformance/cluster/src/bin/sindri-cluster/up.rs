//! `up`: starts a cluster that keeps running after this program.

use std::process::Command;
use std::time::Duration;

use sindri_cluster::owned_process::{OwnedProcess, ProcessEvent};
use sindri_cluster::program::{forward_line, print_line};
use sindri_cluster::registry::ClusterRecord;
use sindri_cluster::{ClusterError, Home, ProviderName, Stop};

use crate::flags::ClusterFlags;
use crate::hold::KEEP;

/// Longer than any build takes; providers have their own timeouts.
const UP_MAX: Duration = Duration::from_secs(3600);

pub fn up(home: &Home, flags: &ClusterFlags, stop: &Stop) -> Result<(), ClusterError> {
    // Errors of the user are reported here, and not by a process in the background.
    flags.provider(home)?;
    let own = std::env::current_exe().map_err(|error| ClusterError::Usage(error.to_string()))?;
    let mut command = Command::new(own);
    command.arg("hold").args(["--cluster", &flags.cluster.to_string(), "--version", &flags.version.to_string()]);
    command.args(flags.pristine.then_some("--pristine"));
    command.args(flags.keep.then_some("--keep"));
    command.args(flags.port.map(|port| format!("--port={port}")));
    command.args(flags.name.as_ref().map(|name| format!("--name={name}")));
    let started = OwnedProcess::start(&mut command);
    let mut keeper = started.map_err(|error| ClusterError::Usage(format!("cannot start: {error}")))?;
    let record = wait_until_ready(&mut keeper, stop)?;
    keeper
        .write_line(KEEP)
        .map_err(|error| ClusterError::Usage(format!("the keeper of {} has ended: {error}", record.name)))?;
    keeper.detach();
    print_access(&record, flags.cluster);
    Ok(())
}

/// Forwards the output of the keeper until the cluster is ready. If the keeper ends, it has printed the reason, and its exit
/// code is used.
fn wait_until_ready(keeper: &mut OwnedProcess, stop: &Stop) -> Result<ClusterRecord, ClusterError> {
    loop {
        match keeper.next_event(UP_MAX, stop)? {
            ProcessEvent::Line(line) => match line.strip_prefix("READY ").map(serde_json::from_str) {
                Some(Ok(record)) => return Ok(record),
                Some(Err(_)) | None => forward_line(&line),
            },
            ProcessEvent::Ended(status) => std::process::exit(status.code().unwrap_or(1)),
            ProcessEvent::Timeout => return Err(ClusterError::Usage(format!("no cluster within {UP_MAX:?}"))),
        }
    }
}

/// Prints a comment for people and a line for a shell to evaluate.
fn print_access(record: &ClusterRecord, provider: ProviderName) {
    print_line(format!("# {} is up: Kubernetes {} ({provider}) at {}", record.name, record.version, record.server));
    print_line(format!("export KUBECONFIG={}", record.kubeconfig.display()));
}
