//! Runs the commands in README.md and docs/: every `sh` block, each file's as one script.
//!
//! Lines that start a whole part of the test command are not run a second time, and those that build with full
//! optimisation only by the nightly command.

use std::path::PathBuf;

use crate::counts::Counts;
use crate::process::{Run, binaries, root};

/// Commands that `cargo xtask test` runs as a part, or is.
const RUN_ELSEWHERE: [&str; 4] =
    ["cargo xtask sim", "cargo xtask sim --determinism", "cargo xtask test", "cargo xtask mutants"];

/// Prefixes of commands that only the nightly command runs: they build everything with full optimisation.
const OPTIMISED: [&str; 2] = ["cargo xtask bench", "cargo build --quiet --release"];

/// Runs the commands of each file.
pub fn run_all(optimised: bool) -> Result<Counts, String> {
    let mut counts = Counts::default();
    for file in files()? {
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let lines = commands(&text, optimised);
        if lines.is_empty() {
            continue;
        }
        let name = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
        let (code, output) = run(&lines)?;
        println!("{name}: {} lines {}", lines.len(), if code == 0 { "succeed" } else { "FAIL" });
        if code != 0 {
            println!("{output}");
        }
        counts = counts.and(&Counts::from_success(code == 0));
    }
    Ok(counts)
}

fn files() -> Result<Vec<PathBuf>, String> {
    let docs = root().join("docs");
    let listed = std::fs::read_dir(&docs).map_err(|error| format!("{}: {error}", docs.display()))?;
    let mut files: Vec<PathBuf> = listed.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    files.push(root().join("README.md"));
    files.sort();
    Ok(files)
}

fn commands(text: &str, optimised: bool) -> Vec<&str> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        match line.trim_start() {
            "```sh" => inside = true,
            "```" => inside = false,
            _ if inside && !is_run_elsewhere(line) && (optimised || !needs_optimised(line)) => lines.push(line),
            _ => {}
        }
    }
    lines
}

fn needs_optimised(line: &str) -> bool {
    OPTIMISED.iter().any(|prefix| line.starts_with(prefix))
}

/// True for a command that is a part by itself; a comment behind it is ignored.
fn is_run_elsewhere(line: &str) -> bool {
    let command = line.split(" #").next().unwrap_or_default().trim();
    command.is_empty() || RUN_ELSEWHERE.contains(&command)
}

/// Runs one script; processes that it started in the background end with it.
fn run(lines: &[&str]) -> Result<(u8, String), String> {
    let guard = "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n";
    let script = format!("{guard}{}\n", lines.join("\n"));
    let path = std::env::join_paths(std::iter::once(binaries()).chain(std::env::split_paths(&search_path())));
    let path = path.map_err(|error| error.to_string())?;
    Run::program("bash").args(["-c", &script]).env("PATH", path).directory(root()).captured()
}

#[expect(clippy::disallowed_methods, reason = "documented commands find programs where the user's shell does")]
fn search_path() -> String {
    std::env::var("PATH").unwrap_or_default()
}
