//! Programs that the tasks need and that are not ours: found, installed, or named in one line.

use crate::process::Run;

/// A C compiler: SQLite and the TLS library are built with it.
pub fn require_compiler() -> Result<(), String> {
    if exists("cc") || install("gcc").is_ok() {
        return Ok(());
    }
    Err("a C compiler is missing (cc): install gcc, on Debian with `apt-get install gcc`".to_owned())
}

/// kubectl: the simulated API server is tested with it.
pub fn require_kubectl() -> Result<(), String> {
    if exists("kubectl") || install("kubernetes-client").is_ok() {
        return Ok(());
    }
    Err("kubectl is missing: install it, on Debian with `apt-get install kubernetes-client`".to_owned())
}

/// patch: planted bugs are patches.
pub fn require_patch() -> Result<(), String> {
    if exists("patch") || install("patch").is_ok() {
        return Ok(());
    }
    Err("patch is missing: install it, on Debian with `apt-get install patch`".to_owned())
}

fn exists(program: &str) -> bool {
    Run::program(program).arg("--help").captured().is_ok()
}

/// Installs one of Debian's packages, where that is possible.
fn install(package: &str) -> Result<(), String> {
    eprintln!("installing {package} …");
    let apt = |args: &[&str]| match Run::program("apt-get").args(args).captured()? {
        (0, _) => Ok(()),
        (code, _) => Err(format!("apt-get ended with {code}")),
    };
    apt(&["update", "--quiet"])?;
    apt(&["install", "--quiet", "--yes", "--no-install-recommends", package])
}
