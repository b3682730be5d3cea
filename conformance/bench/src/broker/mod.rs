//! Figures of the broker: the real binary under load, next to a bare HTTP server and raw database transactions in the same run.
//!
//! Data is prepared over the broker's own API; requests are sent on raw connections.

mod database;
mod delay;
mod distant;
mod events;
mod fleet;
mod hostile;
mod http_load;
mod idle;
mod polls;
mod prepare;
mod server;
mod waiting;
mod writes;

use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::figures::Figures;
use crate::parts::measure_part;

pub use database::Database;
pub use http_load::{LoadGenerator, get};
pub use prepare::{BrokerData, RegisteredAgent, copy_directory};
pub use server::{Bench, Server, serve_bare};

/// Open files: ten thousand connections, and what a process needs besides.
const FILES: u64 = 12_000;
/// File system in memory on Linux.
const MEMORY: &str = "/dev/shm";

/// Creates a temporary directory in memory, or on the disk where there is no file system in memory.
pub fn memory_directory() -> std::io::Result<tempfile::TempDir> {
    tempfile::tempdir_in(PathBuf::from(MEMORY)).or_else(|_| tempfile::tempdir())
}

const IDLE: &str = "idle broker";
const POLLS: &str = "polls";
const WAITING: &str = "agents that wait";
const SQLITE: &str = "accepted objects, SQLite";
const POSTGRES: &str = "accepted objects, PostgreSQL";
const FLEET: &str = "list of the fleet";
const LISTS: &str = "parallel lists";
const HOSTILE: &str = "hostile texts";
const EVENTS: &str = "events of one agent";
const DISTANT: &str = "distant database";

/// Measurement of a part.
type Measure = fn(&Bench, &mut Figures) -> Result<(), String>;

/// Parts with a broker of their own: name and measurement.
const PARTS: [(&str, Measure); 8] = [
    (IDLE, idle::measure),
    (SQLITE, writes::measure_sqlite),
    (POSTGRES, writes::measure_postgres),
    (FLEET, fleet::measure),
    (LISTS, hostile::measure_lists),
    (HOSTILE, hostile::measure_polls),
    (EVENTS, events::measure),
    (DISTANT, distant::measure),
];

/// Returns true if the name of a part contains the text.
pub fn has_part(filter: &str) -> bool {
    PARTS.iter().map(|(name, _)| *name).chain([POLLS, WAITING]).any(|name| name.contains(filter))
}

/// Measures the parts whose name contains the text. Failures are recorded in the figures; an error is an interruption.
pub fn measure(bench: &Bench, filter: &str, figures: &mut Figures) -> Result<(), String> {
    let runtime = &bench.runtime;
    // Both parts use the same broker with many agents.
    if POLLS.contains(filter) || WAITING.contains(filter) {
        measure_many_agents(bench, figures)?;
    }
    for (name, measure) in PARTS {
        if name.contains(filter) {
            measure_part(runtime, figures, name, |figures| measure(bench, figures))?;
        }
    }
    Ok(())
}

fn measure_many_agents(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    let (limit, mut large) = (raise_file_limit(), None);
    measure_part(&bench.runtime, figures, POLLS, |figures| {
        polls::measure(bench, figures).map(|measured| large = Some(measured))
    })?;
    measure_part(&bench.runtime, figures, WAITING, |figures| {
        limit?;
        waiting::measure(bench, large.as_ref().ok_or("there is no broker with many agents")?, figures)
    })
}

/// Raises the limit of open files for the connections of this process and of the servers, which inherit the limit.
fn raise_file_limit() -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|files| files >= FILES) {
        return Ok(());
    }
    let maximum = limit.maximum.map(|files| files.max(FILES));
    setrlimit(Resource::Nofile, Rlimit { current: Some(FILES), maximum })
        .map_err(|error| format!("a process may not have {FILES} open files: {error}"))
}
