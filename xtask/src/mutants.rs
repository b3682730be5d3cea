//! Plants the bugs of `sim/mutants` and checks that the simulation catches each.
//!
//! All of them are planted in one copy of the project, which is built once. A variable chooses the one that a run has.
//! The copy has a target directory of its own, which starts as a copy of the compiled dependencies: in a shared one cargo
//! would confuse the crates of the copy with those of the project.

mod planted_bug;
mod result;

use std::path::{Path, PathBuf};
use std::time::Instant;

use self::planted_bug::{PlantedBug, VARIABLE};
use self::result::{FailingWorld, find_failing_world};
use crate::process::{Run, binaries, root, target};

/// Directory of the planted bugs.
const DIRECTORY: &str = "sim/mutants";
/// More worlds than there is time for.
const WORLDS: &str = "100000";
/// Seeds of the scenario that catches a bug which no world has caught.
const SCENARIO_SEEDS: &str = "21";

/// Bugs to plant, and the time for each.
pub struct Selection {
    /// Names; all if empty.
    pub names: Vec<String>,
    /// Minutes of random worlds for each bug.
    pub minutes: u32,
}

/// Result of the runs with one bug.
enum Caught {
    ByWorld(FailingWorld),
    ByScenario,
    Not,
}

/// Returns true if every planted bug was caught.
pub fn catch_all(selection: &Selection) -> Result<bool, String> {
    let bugs = PlantedBug::read_all(&root().join(DIRECTORY))?;
    let files = tracked_files()?;
    seed_target()?;
    let tree = plant(&bugs, &files)?;
    let simulation = build(&tree)?;
    let unknown = selection.names.iter().find(|name| !bugs.iter().any(|bug| bug.name == **name));
    if let Some(unknown) = unknown {
        return Err(format!("there is no planted bug {unknown:?}"));
    }
    let chosen: Vec<&PlantedBug> =
        bugs.iter().filter(|bug| selection.names.is_empty() || selection.names.contains(&bug.name)).collect();
    let mut counts = (0, 0);
    for bug in &chosen {
        let started = now();
        let caught = catch(bug, &simulation, &tree, selection.minutes)?;
        let seconds = started.elapsed().as_secs();
        let text = match &caught {
            Caught::ByWorld(world) => {
                format!("world {} ({}), reduced to {} lines, {seconds} s", world.seed, world.oracle, world.story_lines)
            }
            Caught::ByScenario => format!("only scenario {}, {seconds} s", bug.scenario.as_deref().unwrap_or_default()),
            Caught::Not => format!("NOT CAUGHT, {seconds} s"),
        };
        println!("{:<50} {text}", bug.name);
        counts.0 += usize::from(matches!(caught, Caught::ByWorld(_)));
        counts.1 += usize::from(matches!(caught, Caught::ByScenario));
    }
    println!("{} planted bugs: {} caught by worlds, {} only by scenarios", chosen.len(), counts.0, counts.1);
    Ok(!chosen.is_empty() && counts.0 + counts.1 == chosen.len())
}

/// Returns the reasons why planted bugs do not fit the code: their text has changed or occurs twice.
pub fn find_misfits() -> Result<Vec<String>, String> {
    let misfit = |bug: &PlantedBug| {
        let content = std::fs::read(root().join(&bug.file)).map_err(|error| format!("{}: {error}", bug.file));
        content.and_then(|content| bug.plant(&content)).err()
    };
    Ok(PlantedBug::read_all(&root().join(DIRECTORY))?.iter().filter_map(misfit).collect())
}

#[expect(clippy::disallowed_methods, reason = "a task measures real time")]
fn now() -> Instant {
    Instant::now()
}

fn catch(bug: &PlantedBug, simulation: &Path, tree: &Path, minutes: u32) -> Result<Caught, String> {
    let run = || Run::program(simulation).args(["sim", "--root"]).arg(tree).env(VARIABLE, &bug.name);
    let worlds = ["--worlds", WORLDS, "--minutes", &minutes.to_string(), "--fail-fast"];
    let (_, output) = run().args(worlds).captured()?;
    if let Some(world) = find_failing_world(&output) {
        return Ok(Caught::ByWorld(world));
    }
    let Some(scenario) = &bug.scenario else { return Ok(Caught::Not) };
    let (code, output) = run().args(["--scenario", scenario, "--seeds", SCENARIO_SEEDS]).captured()?;
    // Every failure has one sentence and a command that repeats it.
    let is_explained = output.contains(&format!("{scenario} with seed ")) && output.contains("replay: cargo xtask sim");
    Ok(if code == 1 && is_explained { Caught::ByScenario } else { Caught::Not })
}

/// Directory of the copy and of its target directory.
fn directory() -> PathBuf {
    target().join("mutants")
}

/// Copies the compiled dependencies, which are the same in the copy of the project.
fn seed_target() -> Result<(), String> {
    let copy = directory().join("target/debug");
    if copy.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(&copy).map_err(|error| format!("{}: {error}", copy.display()))?;
    for part in ["deps", "build", ".fingerprint"] {
        let from = binaries().join(part);
        if Run::program("cp").args(["-a", "--reflink=auto"]).arg(&from).arg(&copy).code()? != 0 {
            return Err(format!("{} could not be copied", from.display()));
        }
    }
    Ok(())
}

/// Files that git tracks or would track: no build results.
fn tracked_files() -> Result<Vec<String>, String> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let (_, files) = Run::program("git").directory(root()).args(list).captured()?;
    Ok(files.lines().map(str::to_owned).collect())
}

/// Makes a copy of the project with all bugs in it. A file that did not change keeps its modification time, so that cargo
/// builds only what changed.
fn plant(bugs: &[PlantedBug], files: &[String]) -> Result<PathBuf, String> {
    let tree = directory().join("tree");
    remove_deleted_files(&tree, &tree)?;
    for file in files {
        let original = root().join(file);
        if original.is_symlink() && original.is_dir() {
            copy_link(&original, &tree.join(file))?;
            continue;
        }
        let Ok(mut content) = std::fs::read(&original) else { continue };
        for bug in bugs.iter().filter(|bug| bug.file == *file) {
            content = bug.plant(&content)?;
        }
        write(&tree.join(file), &content)?;
    }
    Ok(tree)
}

/// Deletes files that the project no longer has: they would still be compiled.
fn remove_deleted_files(tree: &Path, directory: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(()) };
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let name = path.strip_prefix(tree).unwrap_or(&path).to_string_lossy().into_owned();
        if path.is_dir() {
            remove_deleted_files(tree, &path)?;
        } else if !root().join(&name).exists() && name != "Cargo.lock" {
            std::fs::remove_file(&path).map_err(failed)?;
        }
    }
    Ok(())
}

/// Makes the same link in the copy: it leads to a directory of the copy.
fn copy_link(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", to.display());
    if to.is_symlink() {
        return Ok(());
    }
    to.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
    std::fs::read_link(from).and_then(|link| std::os::unix::fs::symlink(link, to)).map_err(failed)
}

fn write(to: &Path, content: &[u8]) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", to.display());
    if std::fs::read(to).is_ok_and(|known| known == content) {
        return Ok(());
    }
    to.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(to, content)).map_err(failed)
}

/// Builds the simulation of the copy; returns its path.
fn build(tree: &Path) -> Result<PathBuf, String> {
    let build = Run::program(env!("CARGO"))
        .directory(tree)
        .env("CARGO_TARGET_DIR", directory().join("target"))
        // The copy lies inside the project, whose cargo configuration would be added to its own: a variable replaces both.
        .env("RUSTFLAGS", "--cfg tokio_unstable");
    match build.args(["build", "--workspace", "--bin", "sindri-sim"]).code()? {
        0 => {}
        code => return Err(format!("the project with planted bugs does not compile (exit code {code})")),
    }
    Ok(directory().join("target/debug/sindri-sim"))
}
