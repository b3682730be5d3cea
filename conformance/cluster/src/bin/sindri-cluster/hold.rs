//! `hold`: keeps one cluster of any provider running until it gets a signal. `up` starts it, and `down` signals it.
//!
//! `up` reads its output. Until `up` writes `keep` to its stdin, it ends when its stdin is closed; from then on it runs
//! independently.

use std::io::BufRead;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use sindri_cluster::program::{print_error, print_line};
use sindri_cluster::registry::{ClusterRecord, Registry, process_start_ticks};
use sindri_cluster::{Cluster, ClusterError, Home, Options, Stop};

use crate::flags::{ClusterFlags, PROGRAM};

/// Time between two checks of the cluster.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// Written by `up` when the cluster is ready.
pub const KEEP: &str = "keep";
/// Signal that a closed stdin counts as.
const HANGUP: u8 = 1;

pub fn hold(home: &Home, flags: &ClusterFlags, stop: &Stop) -> Result<(), ClusterError> {
    let registry = Registry::new(home);
    let name = registry.reserve_name(flags.name.as_deref(), &flags.cluster.to_string())?;
    let held = hold_as(home, flags, stop, &registry, &name);
    registry.remove(&name, flags.keep);
    if flags.keep {
        print_error(
            PROGRAM,
            format!("the files of {name} are kept in {}", registry.cluster_directory(&name).display()),
        );
    }
    held
}

fn hold_as(
    home: &Home,
    flags: &ClusterFlags,
    stop: &Stop,
    registry: &Registry,
    name: &str,
) -> Result<(), ClusterError> {
    let kept = watch_stdin(stop);
    let options = Options { directory: Some(registry.cluster_directory(name)), ..flags.options(stop) };
    let mut cluster = flags.provider(home)?.start(&options)?;
    let record = record(name, flags, cluster.as_ref());
    registry
        .write(&record)
        .map_err(|error| ClusterError::Usage(format!("{}: {error}", registry.cluster_directory(name).display())))?;
    print_line(format!("READY {}", serde_json::to_string(&record).unwrap_or_default()));
    while !stop.is_set() {
        // The sender is dropped when stdin is closed; after `keep` that is expected.
        if let Err(RecvTimeoutError::Disconnected) = kept.recv_timeout(CHECK_INTERVAL) {
            pause();
        }
        cluster.check()?;
    }
    Ok(())
}

/// Reads stdin on a thread. If it is closed before `keep`, `up` has ended early, and the cluster must end too.
fn watch_stdin(stop: &Stop) -> Receiver<()> {
    let (done, finished) = sync_channel::<()>(0);
    let stop = stop.clone();
    let read = move || {
        let kept = std::io::stdin().lock().lines().any(|line| line.is_ok_and(|line| line == KEEP));
        if !kept {
            stop.set(HANGUP);
        }
        drop(done);
    };
    // The thread ends with stdin or with the process.
    let _thread = std::thread::Builder::new().name("stdin".to_owned()).spawn(read);
    finished
}

#[expect(clippy::disallowed_methods, reason = "the binary reads the real clock")]
fn pause() {
    std::thread::sleep(CHECK_INTERVAL);
}

#[expect(clippy::disallowed_methods, reason = "the binary reads the real clock")]
fn record(name: &str, flags: &ClusterFlags, cluster: &dyn Cluster) -> ClusterRecord {
    let access = cluster.access();
    let keeper = std::process::id();
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    ClusterRecord {
        name: name.to_owned(),
        provider: flags.cluster.to_string(),
        version: cluster.version().to_owned(),
        server: access.server.clone(),
        kubeconfig: access.kubeconfig.clone(),
        keeper,
        keeper_began: process_start_ticks(keeper).unwrap_or_default(),
        started: since.map(|since| since.as_secs()).unwrap_or_default(),
    }
}
