//! The broker's figures: the real binary under load, each as a ratio to something bare in the same run. The agent's are in
//! `agent`.
//!
//! It prepares data over the broker's own API, asks with raw connections, and prints what falls short.

pub mod agent;
mod idle;
mod load;
mod polls;
mod prepare;
mod server;
mod waiting;
mod writes;

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sindri_figures::Sheet;

use crate::waiter::Waiter;

pub use server::{Bench, serve_bare};

/// Ten thousand connections and what a process needs besides.
const FILES: u64 = 12_000;
/// Where Linux keeps files that are never written to a disk.
const MEMORY: &str = "/dev/shm";

/// A directory where writing costs little, or one on the disk where there is none.
pub fn memory_directory() -> std::io::Result<tempfile::TempDir> {
    tempfile::tempdir_in(PathBuf::from(MEMORY)).or_else(|_| tempfile::tempdir())
}

/// Measures everything. What could not be measured is counted in the sheet; an error is an interruption.
pub fn measure(bench: &Bench, sheet: &mut Sheet) -> Result<(), String> {
    let (waiter, limit) = (&bench.waiter, raise_file_limit());
    note(waiter, sheet, "idle broker", |sheet| idle::measure(bench, sheet))?;
    let mut large = None;
    note(waiter, sheet, "polls", |sheet| polls::measure(bench, sheet).map(|measured| large = Some(measured)))?;
    note(waiter, sheet, "agents that wait", |sheet| {
        limit?;
        waiting::measure(bench, large.as_ref().ok_or("there is no broker with many agents")?, sheet)
    })?;
    drop(large);
    note(waiter, sheet, "accepted objects, SQLite", |sheet| writes::measure_sqlite(bench, sheet))?;
    note(waiter, sheet, "accepted objects, PostgreSQL", |sheet| writes::measure_postgres(bench, sheet))
}

fn note(
    waiter: &Waiter,
    sheet: &mut Sheet,
    name: &str,
    part: impl FnOnce(&mut Sheet) -> Result<(), String>,
) -> Result<(), String> {
    let measured = part(sheet);
    waiter.pause(Duration::ZERO).map_err(|cut| cut.to_string())?;
    if let Err(reason) = measured {
        sheet.add_missing(name, &reason);
    }
    Ok(())
}

/// So many connections need as many files, here and in the servers, which inherit the limit.
fn raise_file_limit() -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|files| files >= FILES) {
        return Ok(());
    }
    let maximum = limit.maximum.map(|files| files.max(FILES));
    setrlimit(Resource::Nofile, Rlimit { current: Some(FILES), maximum })
        .map_err(|error| format!("a process may not have {FILES} open files: {error}"))
}
