//! Plants each bug of `sim/mutants` into a copy of the project and checks that the simulation catches it.
//!
//! A mutant is a patch with a few lines before it: the bug, the scenario that catches it, and the first seed with the
//! number of seeds. The copy has a target directory of its own, which starts as a copy of the compiled dependencies:
//! in a shared one cargo would confuse the crates of the copy with those of the project.

use std::path::{Path, PathBuf};

use crate::process::{Run, binaries, root, target};
use crate::tools;

struct Mutant {
    name: String,
    patch: PathBuf,
    scenario: String,
    first_seed: String,
    seeds: String,
}

/// True if every planted bug was caught.
pub fn catch_all() -> Result<bool, String> {
    tools::require_patch()?;
    let mutants = read_all()?;
    let files = tracked_files()?;
    seed_target()?;
    let caught: Result<Vec<bool>, String> = mutants.iter().map(|mutant| catch(mutant, &files)).collect();
    caught.map(|caught| !caught.is_empty() && caught.iter().all(|caught| *caught))
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

fn catch(mutant: &Mutant, files: &[String]) -> Result<bool, String> {
    let caught = build_and_run(&plant(mutant, files)?, mutant)?;
    println!("{:<40} {}", mutant.name, if caught { "caught" } else { "NOT CAUGHT" });
    Ok(caught)
}

fn read_all() -> Result<Vec<Mutant>, String> {
    let directory = root().join("sim/mutants");
    let fail = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(&directory).map_err(fail)?.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "patch"));
    paths.sort();
    paths.into_iter().map(read).collect()
}

fn read(patch: PathBuf) -> Result<Mutant, String> {
    let text = std::fs::read_to_string(&patch).map_err(|error| format!("{}: {error}", patch.display()))?;
    let field = |name: &str| {
        let line = text.lines().take_while(|line| !line.starts_with("diff ")).find_map(|line| line.strip_prefix(name));
        line.map(str::trim).ok_or_else(|| format!("{}: the line {name:?} is missing", patch.display()))
    };
    let (first_seed, seeds) =
        field("seeds:")?.split_once(' ').ok_or_else(|| format!("{}: seeds: FIRST COUNT", patch.display()))?;
    let name = patch.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Mutant {
        name,
        scenario: field("scenario:")?.to_owned(),
        first_seed: first_seed.to_owned(),
        seeds: seeds.to_owned(),
        patch: patch.clone(),
    })
}

/// Files that git tracks or would track: no build results.
fn tracked_files() -> Result<Vec<String>, String> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let (_, files) = Run::program("git").directory(root()).args(list).captured()?;
    Ok(files.lines().map(str::to_owned).collect())
}

/// Makes a copy of the project with the bug in it. A file that did not change keeps its modification time, so that cargo
/// builds only what changed.
fn plant(mutant: &Mutant, files: &[String]) -> Result<PathBuf, String> {
    let (tree, patched) = (directory().join("tree"), directory().join("patched"));
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    if patched.exists() {
        std::fs::remove_dir_all(&patched).map_err(|error| failed(&patched, error))?;
    }
    for file in files.iter().filter(|file| file.ends_with(".rs") && root().join(file).exists()) {
        copy(&root().join(file), &patched.join(file))?;
    }
    let arguments = ["--strip=1", "--silent", "--no-backup-if-mismatch", "--forward", "--input"];
    let (code, output) = Run::program("patch").args(arguments).arg(&mutant.patch).directory(&patched).captured()?;
    if code != 0 {
        return Err(format!("{} does not apply to the code any more: {output}", mutant.patch.display()));
    }
    remove_deleted_files(&tree, &tree)?;
    for file in files {
        let (changed, original) = (patched.join(file), root().join(file));
        if changed.exists() {
            copy(&changed, &tree.join(file))?;
        } else if original.exists() {
            copy(&original, &tree.join(file))?;
        }
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

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", from.display());
    let content = std::fs::read(from).map_err(failed)?;
    if std::fs::read(to).is_ok_and(|known| known == content) {
        return Ok(());
    }
    to.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(to, content)).map_err(failed)
}

fn build_and_run(tree: &Path, mutant: &Mutant) -> Result<bool, String> {
    let build = Run::program(env!("CARGO"))
        .directory(tree)
        .env("CARGO_TARGET_DIR", directory().join("target"))
        // The copy lies inside the project, whose cargo configuration would be added to its own: a variable replaces both.
        .env("RUSTFLAGS", "--cfg tokio_unstable");
    let (code, output) = build.args(["build", "--quiet", "--workspace", "--bin", "sindri-sim"]).captured()?;
    if code != 0 {
        return Err(format!("{} does not compile: {output}", mutant.name));
    }
    let run = Run::program(directory().join("target/debug/sindri-sim")).args(["sim", "--root"]).arg(tree);
    let (code, output) = run
        .args(["--scenario", &mutant.scenario, "--seed", &mutant.first_seed, "--seeds", &mutant.seeds])
        .captured()?;
    // Every failure has one sentence and a command that replays it.
    let explained =
        output.contains(&format!("{} with seed ", mutant.scenario)) && output.contains("replay: cargo xtask sim");
    let sentence = output.lines().find(|line| line.contains(" with seed ")).unwrap_or(&output);
    println!("  {sentence}");
    Ok(code == 1 && explained)
}
