//! Programs that the tasks need: found, installed from Debian's packages, or named in a one-line error.

use std::path::{Path, PathBuf};

use crate::process::Run;

/// Directory of Debian's PostgreSQL programs, one subdirectory per version.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";

/// A C compiler: SQLite and the TLS library are built with it.
pub fn require_compiler() -> Result<(), String> {
    if exists("cc") || install("gcc").is_ok() {
        return Ok(());
    }
    Err("a C compiler is missing (cc): install gcc, on Debian with `apt-get install gcc`".to_owned())
}

/// A C++ compiler: the fuzzer is built with it.
pub fn require_cpp_compiler() -> Result<(), String> {
    if exists("c++") || install("g++").is_ok() {
        return Ok(());
    }
    Err("a C++ compiler is missing (c++): install g++, on Debian with `apt-get install g++`".to_owned())
}

/// Target triple of this machine.
pub fn host_triple() -> Result<String, String> {
    let (_, output) = Run::program("rustc").arg("-vV").captured()?;
    let host = output.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "`rustc -vV` prints no host".to_owned())
}

/// kubectl: the simulated API server is tested with it.
pub fn require_kubectl() -> Result<(), String> {
    if exists("kubectl") || install("kubernetes-client").is_ok() {
        return Ok(());
    }
    Err("kubectl is missing: install it, on Debian with `apt-get install kubernetes-client`".to_owned())
}

/// Name of the browser.
pub const CHROMIUM: &str = "chromium";

/// Chromium: the report of a simulation is looked at in it.
pub fn require_chromium() -> Result<(), String> {
    if exists(CHROMIUM) || install(CHROMIUM).is_ok() {
        return Ok(());
    }
    Err("Chromium is missing: install it, on Debian with `apt-get install chromium`".to_owned())
}

/// The directory of PostgreSQL's programs: some tests and benchmarks need a server.
pub fn require_postgres() -> Result<PathBuf, String> {
    let directory = find_postgres().or_else(|| install("postgresql").ok().and_then(|()| find_postgres()));
    directory.ok_or_else(|| {
        "PostgreSQL is missing (initdb, postgres): install it, on Debian with `apt-get install postgresql`".to_owned()
    })
}

fn find_postgres() -> Option<PathBuf> {
    let mut versions: Vec<PathBuf> = std::fs::read_dir(POSTGRES_VERSIONS)
        .map(|listed| listed.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect())
        .unwrap_or_default();
    versions.sort_by_key(|path| version(path));
    let packaged = versions.into_iter().rev().map(|path| path.join("bin"));
    let searched = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&searched).chain(packaged).find_map(|directory| with_programs(&directory))
}

/// Returns the directory with links resolved if it has the programs, which look for each other beside themselves.
fn with_programs(directory: &Path) -> Option<PathBuf> {
    let initdb = directory.join("initdb").canonicalize().ok()?;
    let real = initdb.parent()?;
    real.join("postgres").is_file().then(|| real.to_owned())
}

fn version(path: &Path) -> u32 {
    path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok()).unwrap_or_default()
}

fn exists(program: &str) -> bool {
    Run::program(program).arg("--help").captured().is_ok()
}

/// Installs a Debian package, where that is possible.
fn install(package: &str) -> Result<(), String> {
    eprintln!("installing {package} …");
    let apt = |args: &[&str]| match Run::program("apt-get").args(args).captured()? {
        (0, _) => Ok(()),
        (code, _) => Err(format!("apt-get ended with {code}")),
    };
    apt(&["update", "--quiet"])?;
    apt(&["install", "--quiet", "--yes", "--no-install-recommends", package])
}
