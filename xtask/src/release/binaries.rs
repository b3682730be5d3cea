//! The shipped binaries: optimised, stripped, and linked statically, so that they run on any Linux and in an empty image.

use std::path::PathBuf;

use super::files::fail;
use crate::process::{Run, root, target};
use crate::tools;

/// Binaries that are shipped, with one sentence about each.
pub const BINARIES: [(&str, &str); 4] = [
    ("sindri-broker", "Stores the stacks of many Kubernetes clusters, and serves them to the agents."),
    ("sindri-agent", "Keeps one Kubernetes cluster at the state that the broker declares for it."),
    ("sindri", "The command line of operators."),
    ("sindri-apiserver", "A simulated Kubernetes API server for tests."),
];

/// Architecture of this machine, under its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Architecture {
    /// Name in file names.
    pub name: &'static str,
    /// Name in the description of an image.
    pub in_images: &'static str,
    /// Name for the compiler.
    pub triple: &'static str,
}

const ARCHITECTURES: [Architecture; 2] = [
    Architecture { name: "x86_64", in_images: "amd64", triple: "x86_64-unknown-linux-gnu" },
    Architecture { name: "aarch64", in_images: "arm64", triple: "aarch64-unknown-linux-gnu" },
];

/// Binaries that were built.
pub struct Built {
    pub architecture: Architecture,
    /// Directory of the binaries.
    pub directory: PathBuf,
    /// Commit that they were built from.
    pub commit: String,
    /// Time of that commit, in seconds since 1970.
    pub committed: String,
}

#[cfg(test)]
impl Built {
    /// Makes binaries of a test.
    pub fn for_tests(directory: &std::path::Path) -> Self {
        let (commit, committed) = ("0123456789ab".to_owned(), "1700000000".to_owned());
        Self { architecture: ARCHITECTURES[0], directory: directory.to_owned(), commit, committed }
    }
}

/// Builds the binaries. Their version has the commit.
pub fn build() -> Result<Built, String> {
    tools::require_compiler()?;
    let architecture = find_architecture(&tools::host_triple()?)?;
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let is_changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    let commit = if is_changed { format!("{commit}-changed") } else { commit };
    let names = BINARIES.iter().flat_map(|(name, _)| ["--bin", name]);
    let build = Run::cargo()
        .args(["build", "--workspace", "--release", "--locked", "--target", architecture.triple])
        .args(names)
        // Replaces the flags of `.cargo/config.toml`. The named target keeps them out of build scripts.
        .env("RUSTFLAGS", "--cfg tokio_unstable -C target-feature=+crt-static")
        .env("SINDRI_VERSION", format!("{} ({commit})", version()));
    match build.code()? {
        0 => {}
        code => return Err(format!("cargo build failed (exit code {code})")),
    }
    let directory = target().join(architecture.triple).join("release");
    Ok(Built { architecture, directory, commit, committed: git(&["log", "-1", "--format=%ct"])? })
}

fn find_architecture(host: &str) -> Result<Architecture, String> {
    let known = ARCHITECTURES.into_iter().find(|architecture| architecture.triple == host);
    known.ok_or_else(|| {
        let triples = ARCHITECTURES.map(|architecture| architecture.triple).join(" and ");
        format!("nothing is shipped for {host}: run this on {triples}")
    })
}

/// Version of the project.
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Directory for what is made, empty.
pub fn prepare_directory(name: &str) -> Result<PathBuf, String> {
    let directory = target().join(name);
    if directory.exists() {
        std::fs::remove_dir_all(&directory).map_err(fail(&directory))?;
    }
    std::fs::create_dir_all(&directory).map_err(fail(&directory))?;
    Ok(directory)
}

fn git(arguments: &[&str]) -> Result<String, String> {
    match Run::program("git").directory(root()).args(arguments).captured()? {
        (0, output) => Ok(output.trim().to_owned()),
        (_, output) => Err(format!("git {}: {}", arguments.join(" "), output.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_architecture_is_an_error_that_names_the_known_ones() {
        assert_eq!(find_architecture("aarch64-unknown-linux-gnu").unwrap().in_images, "arm64");
        let error = find_architecture("riscv64gc-unknown-linux-gnu").unwrap_err();
        assert!(error.contains("riscv64gc") && error.contains("x86_64-unknown-linux-gnu"), "{error}");
    }
}
