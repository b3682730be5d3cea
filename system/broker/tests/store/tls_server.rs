//! A PostgreSQL server with TLS, made from the programs of the one that tests are given.

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio_postgres::NoTls;

/// Creates a database cluster and runs its server until standard input ends, which is when the test ends.
const GUARD: &str = r#"
cd "$1" && "$2/initdb" --username sindri --auth trust --encoding UTF8 --no-sync --pgdata data
"$2/postgres" -D data -p "$3" -c listen_addresses=localhost,127.0.0.1 -c unix_socket_directories= -c fsync=off \
  -c ssl=on -c ssl_cert_file="$1/server.crt" -c ssl_key_file="$1/server.key" </dev/null & server=$!
read -r _
kill -QUIT "$server"; wait
"#;
const STARTS_WITHIN: usize = 200;

pub struct TlsServer {
    pub port: u16,
    guard: Child,
    _directory: TempDir,
}

impl TlsServer {
    /// Starts a server with this certificate and key.
    pub async fn start(url: &str, certificate: &str, key: &str) -> Self {
        let (programs, data) = locate(url).await;
        let owner = std::fs::metadata(data).unwrap();
        let directory = tempfile::tempdir().unwrap();
        chown(directory.path(), Some(owner.uid()), Some(owner.gid())).unwrap();
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            write_private(&directory.path().join(name), text, owner.uid(), owner.gid());
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "guard"]).arg(directory.path()).args([&programs, &port.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let guard = command.uid(owner.uid()).gid(owner.gid()).current_dir(directory.path()).spawn().unwrap();
        let server = Self { port, guard, _directory: directory };
        server.await_start().await;
        server
    }

    async fn await_start(&self) {
        let url = format!("postgres://sindri@127.0.0.1:{}/postgres", self.port);
        for _ in 0..STARTS_WITHIN {
            if tokio_postgres::connect(&url, NoTls).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the server does not start");
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ended = self.guard.wait();
    }
}

fn write_private(path: &Path, text: &str, user: u32, group: u32) {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    chown(path, Some(user), Some(group)).unwrap();
}

/// Returns the directories of the programs and of the data of a server on this machine.
async fn locate(url: &str) -> (String, String) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(connection);
    let read = async |sql: &str| client.query_one(sql, &[]).await.unwrap().get::<_, String>(0);
    (read("SELECT setting FROM pg_config WHERE name = 'BINDIR'").await, read("SHOW data_directory").await)
}
