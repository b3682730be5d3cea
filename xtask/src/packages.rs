//! Packages of other languages, installed once from pinned versions below Cargo's target directory, and programs that use them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::counts::Counts;
use crate::process::{Run, root};

/// Returns true if a program is installed.
pub fn exists(program: &str) -> bool {
    Run::program(program).arg("--version").captured().is_ok_and(|(code, _)| code == 0)
}

/// Copies files of a directory of the project; returns true if what `pinned` lists is installed already.
pub fn copy_sources(sources: &str, directory: &Path, files: &[&str], pinned: &str) -> Result<bool, String> {
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    for file in files {
        let from = root().join(sources).join(file);
        fs::copy(&from, directory.join(file)).map_err(|error| format!("{}: {error}", from.display()))?;
    }
    let read = |path: PathBuf| fs::read(path).ok();
    Ok(read(directory.join(pinned)) == read(installed(directory)))
}

/// Records that what `pinned` lists is installed.
pub fn record_installed(directory: &Path, pinned: &str) -> Result<(), String> {
    let copied = fs::copy(directory.join(pinned), installed(directory));
    copied.map(drop).map_err(|error| format!("{}: {error}", directory.display()))
}

/// Copy of the list of versions that are installed.
fn installed(directory: &Path) -> PathBuf {
    directory.join("installed")
}

/// Runs a program; its output is part of the error.
pub fn succeed(run: Run) -> Result<(), String> {
    match run.captured()? {
        (0, _) => Ok(()),
        (code, output) => Err(format!("exit code {code}\n{output}")),
    }
}

/// Runs a program; prints its output if it fails.
pub fn check(title: &str, run: Run) -> Result<Counts, String> {
    let (code, output) = run.captured()?;
    if code != 0 {
        println!("failed: {title}\n{output}");
    }
    Ok(Counts::from_success(code == 0))
}
