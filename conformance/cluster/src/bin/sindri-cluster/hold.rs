//! `hold`: keeps one cluster running until it is told to end, whatever kind it is.
//!
//! `up` starts this program and reads along. Until it is told `keep` it hangs on the leash of `up`; from then on it
//! stays by itself. It drops the cluster as every owner does, so that `down` is nothing but a signal to it.

use std::io::BufRead;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use sindri_cluster::program::{complain, say};
use sindri_cluster::registry::{Record, Registry, began};
use sindri_cluster::{Cluster, ClusterError, Home, Options, Stop};

use crate::{PROGRAM, Wanted};

/// How often the cluster is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// What `up` says when it has seen that the cluster works.
pub const KEEP: &str = "keep";
/// The signal that a closed leash counts as.
const HANGUP: u8 = 1;

pub fn hold(home: &Home, wanted: &Wanted, stop: &Stop) -> Result<(), ClusterError> {
    let registry = Registry::new(home);
    let name = registry.take(wanted.name.as_deref(), &wanted.cluster.to_string())?;
    let held = hold_as(home, wanted, stop, &registry, &name);
    registry.remove(&name, wanted.keep);
    if wanted.keep {
        complain(PROGRAM, format!("what {name} wrote stays in {}", registry.place(&name).display()));
    }
    held
}

fn hold_as(home: &Home, wanted: &Wanted, stop: &Stop, registry: &Registry, name: &str) -> Result<(), ClusterError> {
    let told = listen(stop);
    let options = Options { directory: Some(registry.place(name)), ..wanted.options(stop) };
    let mut cluster = wanted.provider(home)?.start(&options)?;
    let record = record(name, wanted, cluster.as_ref());
    registry
        .write(&record)
        .map_err(|error| ClusterError::Mistake(format!("{}: {error}", registry.place(name).display())))?;
    say(format!("READY {}", serde_json::to_string(&record).unwrap_or_default()));
    while !stop.is_set() {
        // The sender goes when the input ends, which by then is as it should be.
        if let Err(RecvTimeoutError::Disconnected) = told.recv_timeout(LOOK_EVERY) {
            pause();
        }
        cluster.check()?;
    }
    Ok(())
}

/// Listens to `up`: if its input ends before it was told to keep the cluster, `up` is gone, and so is its wish.
fn listen(stop: &Stop) -> Receiver<()> {
    let (done, told) = sync_channel::<()>(0);
    let stop = stop.clone();
    let listen = move || {
        let kept = std::io::stdin().lock().lines().any(|line| line.is_ok_and(|line| line == KEEP));
        if !kept {
            stop.set(HANGUP);
        }
        drop(done);
    };
    // It ends with the input, or with the process.
    let _thread = std::thread::Builder::new().name("leash".to_owned()).spawn(listen);
    told
}

#[expect(clippy::disallowed_methods, reason = "the binary is where real time comes in")]
fn pause() {
    std::thread::sleep(LOOK_EVERY);
}

#[expect(clippy::disallowed_methods, reason = "the binary is where real time comes in")]
fn record(name: &str, wanted: &Wanted, cluster: &dyn Cluster) -> Record {
    let access = cluster.access();
    let keeper = std::process::id();
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Record {
        name: name.to_owned(),
        provider: wanted.cluster.to_string(),
        version: cluster.version().to_owned(),
        server: access.server.clone(),
        kubeconfig: access.kubeconfig.clone(),
        keeper,
        keeper_began: began(keeper).unwrap_or_default(),
        started: since.map(|since| since.as_secs()).unwrap_or_default(),
    }
}
