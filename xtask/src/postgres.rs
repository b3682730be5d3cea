//! A private PostgreSQL for tests and benchmarks: a database cluster in a temporary directory, on a free loopback port.
//!
//! Durability settings are PostgreSQL's defaults. The machine's own PostgreSQL is never touched. A small shell script, the
//! guard, runs the server and ends it when this process ends, even by SIGKILL.

use std::fs::{File, Permissions};
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::tools;

/// The administrator of the private cluster.
const USER: &str = "sindri";
/// Tests run in parallel, each with its own connection pool.
const CONNECTIONS_MAX: &str = "max_connections=200";
/// Another process may take a free port before it is used.
const STARTS_MAX: usize = 3;
const READY_MAX: Duration = Duration::from_secs(30);
const END_MAX: Duration = Duration::from_secs(15);
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Lines of the server's log that are shown with a failure.
const TAIL_LINES: usize = 5;
/// Users without privileges: PostgreSQL refuses to run as root.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// Creates the database cluster and runs its server until standard input ends, which is when this process closes it or
/// ends; then removes everything. A server that is just starting ignores a signal, so the signal is repeated.
/// The arguments are the directory, initdb, the user, and the server with its arguments.
const GUARD: &str = r#"
directory=$1 initdb=$2 user=$3; shift 3
"$initdb" --username "$user" --auth trust --encoding UTF8 --no-sync --pgdata data || echo "FATAL: no cluster"
"$@" </dev/null & server=$!
read -r _
while kill -QUIT "$server"; do sleep 0.05; done
cd / && rm -rf "$directory"
"#;

/// A running server. It ends, and its directory goes, when this is dropped.
pub struct Postgres {
    directory: Directory,
    guard: Option<Child>,
    port: u16,
}

impl Postgres {
    /// Creates a database cluster and starts it. Installs PostgreSQL if it is missing, where that is possible.
    pub fn start() -> Result<Self, String> {
        let binaries = tools::require_postgres()?;
        let owner = unprivileged_user()?;
        let mut started = Err(String::new());
        for _ in 0..STARTS_MAX {
            started = Self::try_start(&binaries, owner);
            if started.is_ok() {
                break;
            }
        }
        started
    }

    fn try_start(binaries: &Path, owner: Option<Owner>) -> Result<Self, String> {
        let mut postgres = Self { directory: Directory::create(owner)?, guard: None, port: free_port()? };
        postgres.guard = Some(postgres.spawn(binaries, owner)?);
        postgres.wait_until_ready().map_err(|fault| format!("PostgreSQL does not start: {fault}"))?;
        Ok(postgres)
    }

    /// URL for clients, as a superuser without a password.
    pub fn url(&self) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/postgres", self.port)
    }

    fn spawn(&self, binaries: &Path, owner: Option<Owner>) -> Result<Child, String> {
        let fail = |error: std::io::Error| format!("{}: {error}", binaries.display());
        let log = File::create(self.log()).map_err(fail)?;
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD, "guard"]).arg(&self.directory.0).arg(binaries.join("initdb")).arg(USER);
        guard.arg(binaries.join("postgres")).args(["-D", "data", "-p", &self.port.to_string(), "-k", "."]);
        guard.args(["-c", "listen_addresses=127.0.0.1", "-c", CONNECTIONS_MAX]);
        guard.current_dir(&self.directory.0).env("LC_ALL", "C").env_remove("PGDATA");
        if let Some(owner) = owner {
            guard.uid(owner.user).gid(owner.group);
        }
        // A process group of its own: Ctrl-C at a terminal must not end it before this process does.
        guard.process_group(0).stdin(Stdio::piped());
        guard.stdout(log.try_clone().map_err(fail)?).stderr(log).spawn().map_err(fail)
    }

    /// Waits until the server's status file says that it is ready; a failure is in its log.
    fn wait_until_ready(&self) -> Result<(), String> {
        let status = self.directory.0.join("data/postmaster.pid");
        let mut waited = Duration::ZERO;
        while waited < READY_MAX {
            if std::fs::read_to_string(&status).is_ok_and(|text| text.lines().any(|line| line.trim() == "ready")) {
                return Ok(());
            }
            let log = self.log_text();
            if log.contains("FATAL") {
                return Err(tail(&log));
            }
            pause();
            waited += CHECK_INTERVAL;
        }
        Err(format!("not ready within {READY_MAX:?}\n{}", tail(&self.log_text())))
    }

    fn log(&self) -> PathBuf {
        self.directory.0.join("log")
    }

    fn log_text(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap_or_default()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let Some(mut guard) = self.guard.take() else { return };
        drop(guard.stdin.take());
        let mut waited = Duration::ZERO;
        while matches!(guard.try_wait(), Ok(None)) && waited < END_MAX {
            pause();
            waited += CHECK_INTERVAL;
        }
        // Fails only if the guard has ended.
        let _ended = guard.kill();
        let _reaped = guard.wait();
    }
}

/// Directory that is removed on drop, unless the guard has done so.
struct Directory(PathBuf);

impl Directory {
    /// Creates a directory that only its owner can read.
    fn create(owner: Option<Owner>) -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("sindri-postgres-{}-{}", std::process::id(), random()?));
        let fail = |error: std::io::Error| format!("{}: {error}", path.display());
        std::fs::create_dir(&path).map_err(fail)?;
        let directory = Self(path.clone());
        std::fs::set_permissions(&path, Permissions::from_mode(0o700)).map_err(fail)?;
        if let Some(owner) = owner {
            chown(&path, Some(owner.user), Some(owner.group)).map_err(fail)?;
        }
        Ok(directory)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Fails if the guard has removed the directory.
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// Owner of the server's process and files.
#[derive(Clone, Copy)]
struct Owner {
    user: u32,
    group: u32,
}

/// Returns the user that runs the server; none if this process is not root and runs it itself.
fn unprivileged_user() -> Result<Option<Owner>, String> {
    let own = std::fs::metadata("/proc/self").map_err(|error| format!("/proc/self: {error}"))?.uid();
    if own != 0 {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd").map_err(|error| format!("/etc/passwd: {error}"))?;
    let found = UNPRIVILEGED.iter().find_map(|name| user_in(&users, name));
    found.map(Some).ok_or_else(|| format!("PostgreSQL does not run as root, and there is no user {UNPRIVILEGED:?}"))
}

fn user_in(users: &str, name: &str) -> Option<Owner> {
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields[0] == name)?;
    Some(Owner { user: fields.get(2)?.parse().ok()?, group: fields.get(3)?.parse().ok()? })
}

fn free_port() -> Result<u16, String> {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    bound.map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}

/// Returns an unpredictable suffix: in a world-writable directory another user could create a guessable name first.
fn random() -> Result<String, String> {
    let mut bytes = [0; 8];
    let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    read.map_err(|error| format!("/dev/urandom: {error}"))?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[expect(clippy::disallowed_methods, reason = "a task waits for another process, and nothing else runs meanwhile")]
fn pause() {
    std::thread::sleep(CHECK_INTERVAL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_server_accepts_connections_and_leaves_nothing_behind() {
        let postgres = Postgres::start().unwrap();
        let (directory, url) = (postgres.directory.0.clone(), postgres.url());
        let output = Command::new(tools::require_postgres().unwrap().join("psql"))
            .args([&url, "-At", "-c", "show fsync", "-c", "show synchronous_commit", "-c", "show listen_addresses"])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "on\non\n127.0.0.1\n", "{output:?}");
        assert!(directory.join("data/postmaster.pid").exists());
        drop(postgres);
        assert!(!directory.exists());
        assert!(std::net::TcpStream::connect(("127.0.0.1", url_port(&url))).is_err());
    }

    fn url_port(url: &str) -> u16 {
        url.rsplit(':').next().unwrap().split('/').next().unwrap().parse().unwrap()
    }

    #[test]
    fn a_user_is_found_by_name_only() {
        let users = "root:x:0:0::/root:/bin/sh\npostgres2:x:7:8::/:\npostgres:x:106:111::/var:/bin/sh\nbroken\n";
        let owner = user_in(users, "postgres").unwrap();
        assert_eq!((owner.user, owner.group), (106, 111));
        assert!(user_in(users, "nobody").is_none());
        assert!(user_in(users, "broken").is_none());
    }
}
