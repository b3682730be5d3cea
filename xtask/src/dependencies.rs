//! Licences and sources of all dependencies, checked by cargo-deny against `deny.toml`.
//!
//! Known vulnerabilities are checked in CI only: their database is fetched from the network.

use std::path::PathBuf;

use crate::counts::Counts;
use crate::packages::{check, succeed};
use crate::process::{Run, root, target};

/// Version that is installed if there is none.
const VERSION: &str = "0.20.2";
/// Checks that need no network.
const CHECKS: [&str; 4] = ["check", "licenses", "bans", "sources"];

/// The nightly part: installs cargo-deny below Cargo's target directory if it is missing.
pub fn test() -> Result<Counts, String> {
    let program = match find() {
        Some(program) => program,
        None => {
            println!("installing cargo-deny {VERSION}, once: this takes some minutes");
            let install = Run::cargo().args(["install", "--quiet", "--locked", "cargo-deny", "--version", VERSION]);
            if let Err(reason) = succeed(install.arg("--root").arg(tools())) {
                println!("cargo install: {reason}");
                return Ok(Counts::skipped("dependencies (cargo-deny cannot be installed)"));
            }
            installed()
        }
    };
    check("licences and sources of all dependencies are permitted", command(program))
}

/// Checks the dependencies of a release, if cargo-deny is installed; returns the exit code.
pub fn check_release() -> Result<u8, String> {
    match find() {
        Some(program) => command(program).code(),
        None => {
            println!("licences are not checked: cargo-deny is missing (`cargo install cargo-deny`)");
            Ok(0)
        }
    }
}

fn command(program: PathBuf) -> Run {
    // Cargo calls a subcommand with its name as the first argument.
    Run::program(program).arg("deny").args(CHECKS).directory(root())
}

/// Finds cargo-deny among the programs of the user, and then among those that this task has installed.
fn find() -> Option<PathBuf> {
    let runs = |program: &PathBuf| Run::program(program).arg("--version").captured().is_ok_and(|(code, _)| code == 0);
    [PathBuf::from("cargo-deny"), installed()].into_iter().find(runs)
}

fn installed() -> PathBuf {
    tools().join("bin/cargo-deny")
}

/// Directory of programs that tasks install.
fn tools() -> PathBuf {
    target().join("tools")
}
