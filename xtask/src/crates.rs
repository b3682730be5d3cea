//! The crates that others can depend on: each can be packaged, and has no dependency with an exact version. And the fuzz targets,
//! which are no members of the workspace: their lock files are current.

use std::path::Path;

use crate::counts::Counts;
use crate::fuzz;
use crate::packages::succeed;
use crate::process::{Run, target};
use crate::release::version;

/// The crates, in the order in which they would be published.
const CRATES: [&str; 6] =
    ["sindri-model", "sindri-merge", "sindri-cel", "sindri-traces", "sindri-client", "sindri-apiserver"];
/// Limit of the registry.
const BYTES_MAX: u64 = 10 * 1024 * 1024;

/// Makes the packages without compiling them, and checks them.
pub fn test() -> Result<Counts, String> {
    let names = CRATES.iter().flat_map(|name| ["--package", name]);
    succeed(Run::cargo().args(["package", "--quiet", "--no-verify", "--allow-dirty"]).args(names))?;
    fuzz::check_lock_files()?;
    let mut counts = Counts::default();
    for name in CRATES {
        let findings = check_package(name)?;
        findings.iter().for_each(|finding| println!("{name}: {finding}"));
        counts = counts.and(&Counts::from_success(findings.is_empty()));
    }
    Ok(counts)
}

fn check_package(name: &str) -> Result<Vec<String>, String> {
    let directory = format!("{name}-{}", version());
    let package = target().join("package").join(format!("{directory}.crate"));
    let size = std::fs::metadata(&package).map_err(|error| format!("{}: {error}", package.display()))?.len();
    let mut findings = find_mistakes(&read(&package, &format!("{directory}/Cargo.toml"))?);
    for file in ["README.md", "LICENSE"] {
        if read(&package, &format!("{directory}/{file}")).is_err() {
            findings.push(format!("has no {file}"));
        }
    }
    if size > BYTES_MAX {
        findings.push(format!("has {size} bytes; the limit is {BYTES_MAX}"));
    }
    Ok(findings)
}

/// Finds what is missing or wrong in the manifest of a package.
fn find_mistakes(manifest: &str) -> Vec<String> {
    let fields = ["description", "license", "readme", "keywords"];
    let is_missing = |field: &&&str| !manifest.lines().any(|line| line.starts_with(&format!("{field} = ")));
    let missing = fields.iter().filter(is_missing).map(|field| format!("the manifest has no {field}"));
    let pinned = manifest.lines().filter(|line| line.contains("version = \"="));
    missing.chain(pinned.map(|line| format!("a dependency has an exact version: {line}"))).collect()
}

/// Reads a file of a package.
fn read(package: &Path, file: &str) -> Result<String, String> {
    match Run::program("tar").arg("-xOzf").arg(package).arg(file).captured()? {
        (0, text) => Ok(text),
        (_, output) => Err(format!("{}: {output}", package.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_version_and_a_missing_field_are_found() {
        let manifest = "[package]\ndescription = \"a\"\nlicense = \"b\"\nreadme = \"c\"\nkeywords = [\n]\n\
                        [dependencies.tokio]\nversion = \"1.54\"\n";
        assert_eq!(find_mistakes(manifest), Vec::<String>::new());
        let wrong = manifest.replace("\"1.54\"", "\"=1.54.1\"").replace("readme", "other");
        let expected = ["the manifest has no readme", "a dependency has an exact version: version = \"=1.54.1\""];
        assert_eq!(find_mistakes(&wrong), expected);
    }
}
