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

const IDLE: &str = "idle broker";
const POLLS: &str = "polls";
const WAITING: &str = "agents that wait";
const SQLITE: &str = "accepted objects, SQLite";
const POSTGRES: &str = "accepted objects, PostgreSQL";

/// Whether some part has a text in its name.
pub fn has_part(filter: &str) -> bool {
    [IDLE, POLLS, WAITING, SQLITE, POSTGRES].iter().any(|name| name.contains(filter))
}

/// Measures the parts that have a text in their name. What could not be measured is counted in the sheet; an error is an
/// interruption.
pub fn measure(bench: &Bench, filter: &str, sheet: &mut Sheet) -> Result<(), String> {
    let waiter = &bench.waiter;
    if IDLE.contains(filter) {
        note(waiter, sheet, IDLE, |sheet| idle::measure(bench, sheet))?;
    }
    // The broker with many agents is the same for both.
    if POLLS.contains(filter) || WAITING.contains(filter) {
        measure_many_agents(bench, sheet)?;
    }
    if SQLITE.contains(filter) {
        note(waiter, sheet, SQLITE, |sheet| writes::measure_sqlite(bench, sheet))?;
    }
    if POSTGRES.contains(filter) {
        note(waiter, sheet, POSTGRES, |sheet| writes::measure_postgres(bench, sheet))?;
    }
    Ok(())
}

fn measure_many_agents(bench: &Bench, sheet: &mut Sheet) -> Result<(), String> {
    let (limit, mut large) = (raise_file_limit(), None);
    note(&bench.waiter, sheet, POLLS, |sheet| polls::measure(bench, sheet).map(|measured| large = Some(measured)))?;
    note(&bench.waiter, sheet, WAITING, |sheet| {
        limit?;
        waiting::measure(bench, large.as_ref().ok_or("there is no broker with many agents")?, sheet)
    })
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
