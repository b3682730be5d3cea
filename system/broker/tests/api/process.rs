//! The broker as a process: its flags, its key file, its signals, its exit codes.

use std::io::{BufRead, BufReader, Lines};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use sindri_model::Pak;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sindri-broker");

fn start(directory: &Path, key_file: bool) -> (Child, Lines<BufReader<ChildStdout>>) {
    let database = format!("sqlite:{}", directory.join("sindri.db").display());
    let mut command = Command::new(PROGRAM);
    command.args(["--listen", "127.0.0.1:0", "--log", "off", "--database-url", &database]);
    if key_file {
        command.arg("--admin-key-file").arg(directory.join("key"));
    }
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    (process, lines)
}

fn stop(mut process: Child) {
    let killed = Command::new("kill").args(["-TERM", &process.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(process.wait().unwrap().code(), Some(0), "SIGTERM is no failure");
}

fn mistake(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn the_first_start_makes_a_key_for_its_owner_only_and_the_second_makes_none() {
    let directory = tempfile::tempdir().unwrap();
    let (process, mut lines) = start(directory.path(), true);
    assert!(lines.next().unwrap().unwrap().starts_with("the administrator's key is in "));
    assert!(lines.next().unwrap().unwrap().starts_with("READY http://127.0.0.1:"));
    let key = std::fs::read_to_string(directory.path().join("key")).unwrap();
    Pak::parse(key.trim()).unwrap();
    for file in ["key", "sindri.db", "sindri.db-wal"] {
        let mode = std::fs::metadata(directory.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    stop(process);
    let (process, mut lines) = start(directory.path(), true);
    assert!(lines.next().unwrap().unwrap().starts_with("READY "));
    assert_eq!(std::fs::read_to_string(directory.path().join("key")).unwrap(), key);
    stop(process);
}

#[test]
fn without_a_key_file_the_key_is_shown_once() {
    let directory = tempfile::tempdir().unwrap();
    let (process, mut lines) = start(directory.path(), false);
    let line = lines.next().unwrap().unwrap();
    Pak::parse(line.strip_prefix("the administrator's key, shown this once: ").unwrap()).unwrap();
    stop(process);
    let (process, mut lines) = start(directory.path(), false);
    assert!(lines.next().unwrap().unwrap().starts_with("READY "));
    stop(process);
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| Command::new(PROGRAM).args(arguments).output().unwrap();
    assert!(mistake(&run(&["--database-url", "mysql:x"])).contains("must be like sqlite:PATH"));
    let missing = format!("sqlite:{}", directory.path().join("no/such/directory.db").display());
    assert!(mistake(&run(&["--database-url", &missing])).contains("no/such/directory.db"));
    let database = format!("sqlite:{}", directory.path().join("a.db").display());
    assert!(mistake(&run(&["--database-url", &database, "--listen", "nowhere"])).contains("cannot listen on nowhere"));
    let fresh = format!("sqlite:{}", directory.path().join("b.db").display());
    std::fs::write(directory.path().join("bad-key"), "nonsense").unwrap();
    let key_file = directory.path().join("bad-key").display().to_string();
    assert!(mistake(&run(&["--database-url", &fresh, "--admin-key-file", &key_file])).contains("not an access key"));
}
