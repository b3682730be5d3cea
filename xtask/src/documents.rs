//! Runs what README and docs tell people to type: every `sh` block, each file's as one script.
//!
//! Lines that start a whole part of the test command are not run a second time.

use std::path::PathBuf;

use crate::process::{Run, root, target};

/// What `cargo xtask test` runs by itself, or is.
const RUN_ELSEWHERE: [&str; 4] =
    ["cargo xtask sim", "cargo xtask sim --determinism", "cargo xtask test", "cargo xtask mutants"];

/// How many files held and how many did not.
pub fn run_all() -> Result<(u64, u64), String> {
    let (mut held, mut failed) = (0, 0);
    for file in files()? {
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let lines = commands(&text);
        if lines.is_empty() {
            continue;
        }
        let name = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
        let (code, said) = run(&lines)?;
        println!("{name}: {} lines {}", lines.len(), if code == 0 { "work" } else { "DO NOT WORK" });
        if code == 0 {
            held += 1;
        } else {
            println!("{said}");
            failed += 1;
        }
    }
    Ok((held, failed))
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

fn commands(text: &str) -> Vec<&str> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        match line.trim_start() {
            "```sh" => inside = true,
            "```" => inside = false,
            _ if inside && !is_run_elsewhere(line) => lines.push(line),
            _ => {}
        }
    }
    lines
}

/// A comment behind the command does not make it another one.
fn is_run_elsewhere(line: &str) -> bool {
    let command = line.split(" #").next().unwrap_or_default().trim();
    command.is_empty() || RUN_ELSEWHERE.contains(&command)
}

/// One script; what it started in the background ends with it.
fn run(lines: &[&str]) -> Result<(u8, String), String> {
    let guard = "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n";
    let script = format!("{guard}{}\n", lines.join("\n"));
    let path =
        std::env::join_paths(std::iter::once(target().join("release")).chain(std::env::split_paths(&search_path())));
    let path = path.map_err(|error| error.to_string())?;
    Run::program("bash").args(["-c", &script]).env("PATH", path).directory(root()).captured()
}

#[expect(clippy::disallowed_methods, reason = "documented commands find programs where the user's shell does")]
fn search_path() -> String {
    std::env::var("PATH").unwrap_or_default()
}
