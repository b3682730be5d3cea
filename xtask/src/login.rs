//! `sindri login` with a real OpenID Connect provider from the registry of npm.

use crate::counts::Counts;
use crate::packages::{check, copy_sources, exists, record_installed, succeed};
use crate::process::{Run, binaries, target};

/// Files of the project from which everything here is made.
const SOURCES: &str = "conformance/oidc";
/// List of the pinned versions.
const PINNED: &str = "package-lock.json";

/// Runs the flow of a login. It is skipped without Node.js, or if the provider cannot be installed.
pub fn test() -> Result<Counts, String> {
    if !(exists("node") && exists("npm")) {
        return Ok(Counts::skipped("login at an OpenID Connect provider (it needs Node.js)"));
    }
    let directory = target().join("oidc");
    if !copy_sources(SOURCES, &directory, &["package.json", PINNED, "flow.mjs"], PINNED)? {
        let install = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
        if let Err(reason) = succeed(Run::program("npm").args(install).directory(&directory)) {
            println!("npm: {reason}");
            return Ok(Counts::skipped("login at an OpenID Connect provider (npm cannot install it)"));
        }
        record_installed(&directory, PINNED)?;
    }
    let programs = [binaries().join("sindri-broker"), binaries().join("sindri")];
    let flow = Run::program("node").arg("flow.mjs").arg(&programs[0]).arg(&programs[1]).directory(&directory);
    check("people log in with the device flow, and their tokens are verified", flow)
}
