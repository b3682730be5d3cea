//! Checks of the sources that the compiler does not make: plain words, modules that do not import each other in cycles, and
//! planted bugs that fit the code.
//!
//! Formatting and lints are cargo's.

mod allowed;
mod cycles;
mod finding;
mod imports;
mod words;

use std::path::{Path, PathBuf};

use finding::Finding;

use crate::mutants;
use crate::process::{Run, root};

/// Pages, scenarios and manifests.
const PROSE: [&str; 3] = ["*.md", "*.yaml", "*.yml"];
/// Folders whose texts are not ours, or name recordings.
const NO_PROSE: [&str; 2] = ["fixtures/", "conformance/record/exchanges/"];

/// Prints every finding; true if there is none.
pub fn check() -> Result<bool, String> {
    let files = list_files(&["*.rs"])?;
    let mut findings = Vec::new();
    let is_ours = |file: &&PathBuf| NO_PROSE.iter().all(|folder| !file.starts_with(folder));
    for file in list_files(&PROSE)?.iter().filter(is_ours) {
        findings.extend(words::check_prose(&file.to_string_lossy(), &read(file)?));
    }
    for file in &files {
        findings.extend(words::check(&file.to_string_lossy(), &read(file)?));
    }
    for package in packages(&files) {
        findings.extend(cycles::check(&package, &files, read)?);
    }
    for Finding { place, message } in &findings {
        println!("{place}: {message}");
    }
    let misfits = mutants::find_misfits()?;
    for misfit in &misfits {
        println!("planted bug {misfit}");
    }
    let count = findings.len() + misfits.len();
    println!("{} files, {count} findings", files.len());
    Ok(count == 0)
}

/// Files that git tracks or would track, relative to the project's directory.
fn list_files(patterns: &[&str]) -> Result<Vec<PathBuf>, String> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let (code, output) = Run::program("git").directory(root()).args(list).args(patterns).captured()?;
    if code != 0 {
        return Err(format!("git ls-files failed: {output}"));
    }
    Ok(output.lines().map(PathBuf::from).filter(|file| root().join(file).exists()).collect())
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(root().join(file)).map_err(|error| format!("{}: {error}", file.display()))
}

/// Directories that hold the root file of a crate: a library, a binary, or a test of several files.
fn packages(files: &[PathBuf]) -> Vec<PathBuf> {
    let is_root = |file: &&PathBuf| file.file_name().is_some_and(|name| name == "lib.rs" || name == "main.rs");
    let mut packages: Vec<PathBuf> =
        files.iter().filter(is_root).filter_map(|file| file.parent().map(Path::to_owned)).collect();
    packages.dedup();
    packages
}
