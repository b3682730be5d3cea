//! The broker process: flags, key file, signals and exit codes.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};
use sindri_model::Pak;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_sindri-broker");

fn start(directory: &Path) -> (Child, Lines<BufReader<ChildStdout>>) {
    start_with(directory, &[])
}

pub fn start_with(directory: &Path, more: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>) {
    let database = format!("sqlite:{}", directory.join("sindri.db").display());
    let mut command = Command::new(PROGRAM);
    command.args(["--listen", "127.0.0.1:0", "--database-url", &database]).args(more);
    if more.contains(&"--log") {
        command.stderr(Stdio::piped());
    } else {
        command.args(["--log", "off"]);
    }
    command.arg("--admin-key-file").arg(directory.join("key"));
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    (process, lines)
}

pub fn stop(mut process: Child) {
    let killed = Command::new("kill").args(["-TERM", &process.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(process.wait().unwrap().code(), Some(0), "SIGTERM is no failure");
}

pub fn error_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn the_first_start_creates_a_private_key_file_and_the_second_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let (process, mut lines) = start(directory.path());
    let shown = lines.next().unwrap().unwrap();
    assert!(shown.starts_with("the administrator's key is stored in "), "{shown}");
    assert!(lines.next().unwrap().unwrap().starts_with("READY http://127.0.0.1:"));
    let key = std::fs::read_to_string(directory.path().join("key")).unwrap();
    Pak::parse(key.trim()).unwrap();
    assert!(!shown.contains(key.trim()), "{shown}");
    for file in ["key", "sindri.db", "sindri.db-wal"] {
        let mode = std::fs::metadata(directory.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    stop(process);
    let (process, mut lines) = start(directory.path());
    assert!(lines.next().unwrap().unwrap().starts_with("READY "));
    assert_eq!(std::fs::read_to_string(directory.path().join("key")).unwrap(), key);
    stop(process);
}

#[test]
fn an_existing_key_file_is_used_at_the_first_start_and_not_printed() {
    let directory = tempfile::tempdir().unwrap();
    let (process, mut lines) = start(directory.path());
    let _shown = lines.next();
    stop(process);
    std::fs::remove_file(directory.path().join("sindri.db")).unwrap();
    let key = std::fs::read_to_string(directory.path().join("key")).unwrap();
    let (process, mut lines) = start(directory.path());
    assert!(lines.next().unwrap().unwrap().starts_with("the administrator's key is the one in "));
    assert_eq!(std::fs::read_to_string(directory.path().join("key")).unwrap(), key);
    stop(process);
}

#[test]
fn the_key_is_printed_only_if_the_operator_asks_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let (process, mut lines) = start_with(directory.path(), &["--print-admin-key"]);
    let shown = lines.next().unwrap().unwrap();
    let key = std::fs::read_to_string(directory.path().join("key")).unwrap();
    assert!(shown.contains("shown only once") && shown.ends_with(key.trim()), "{shown}");
    stop(process);
}

#[test]
fn a_key_file_that_other_users_may_write_to_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("key");
    std::fs::write(&file, "brokkr_BRabcdef_abc\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    let database = format!("sqlite:{}", directory.path().join("sindri.db").display());
    let run = |flag: &str| {
        let flags = ["--listen", "127.0.0.1:0", "--database-url", &database, flag, file.to_str().unwrap()];
        error_line(&Command::new(PROGRAM).args(flags).output().unwrap())
    };
    for flag in ["--admin-key-file", "--webhooks-encryption-key-file"] {
        let line = run(flag);
        assert!(line.contains("other users may write to it (mode 666)"), "{line}");
    }
}

#[test]
fn sighup_without_a_certificate_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (process, mut lines) = start(directory.path());
    let address = ready(&mut lines, "http");
    let signalled = Command::new("kill").args(["-HUP", &process.id().to_string()]).status().unwrap();
    assert!(signalled.success());
    for _ in 0..3 {
        TcpStream::connect(&address).unwrap();
        pause();
    }
    stop(process);
}

#[test]
fn settings_are_reloaded_by_a_request_and_by_sighup() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("broker.toml");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    write("[quotas]\nstacks = 5\n");
    let (process, mut lines) = start_with(directory.path(), &["--config", file.to_str().unwrap()]);
    let address = ready(&mut lines, "http");
    let key = std::fs::read_to_string(directory.path().join("key")).unwrap();
    let post = |key: &str, path: &str, body: &Value| -> (u16, Value) {
        let (mut stream, body) = (TcpStream::connect(&address).unwrap(), body.to_string());
        let head = format!("POST /api/v1{path} HTTP/1.1\r\nhost: b\r\nconnection: close\r\nauthorization: {key}");
        write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
    };
    let reload = || post(key.trim(), "/admin/config/reload", &json!({}));
    let change = |key: &str, old: &str, new: &str, applied: bool| json!({"key": key, "old_value": old, "new_value": new, "applied": applied});
    let (status, response) = reload();
    assert_eq!((status, &response["changes"]), (200, &json!([])), "{response}");
    write("workers = 2\n[quotas]\nstacks = 7\n");
    let (status, response) = reload();
    let workers = change("workers", "1", "2", false);
    let changes = json!([change("quotas.stacks", "5", "7", true), workers]);
    assert_eq!((status, &response["changes"], &response["success"]), (200, &changes, &json!(true)), "{response}");
    let message = "1 settings were reloaded, and 1 need a restart";
    assert_eq!(response["message"], message);
    let (_, response) = reload();
    assert_eq!(response["changes"], json!([workers]), "the other one is in use");
    write("workers = many\n");
    let (status, response) = reload();
    assert_eq!((status, &response["code"]), (422, &json!("invalid_config")), "{response}");
    let (_, generator) = post(key.trim(), "/generators", &json!({"name": "shop"}));
    write("[quotas]\nstacks = 1\n");
    assert!(Command::new("kill").args(["-HUP", &process.id().to_string()]).status().unwrap().success());
    let create = |attempt: usize| {
        let request = json!({"name": attempt.to_string(), "generator_id": generator["generator"]["id"]});
        post(generator["pak"].as_str().unwrap(), "/stacks", &request)
    };
    // Seven stacks were allowed before.
    let created = (0..7).take_while(|attempt| {
        pause();
        create(*attempt).0 == 201
    });
    assert!((1..7).contains(&created.count()));
    assert_eq!(create(8).1["code"], "quota_exceeded");
    stop(process);
}

#[expect(clippy::disallowed_methods, reason = "the test waits for another process")]
fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(50));
}

#[test]
fn no_key_is_created_if_its_file_cannot_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let database = format!("sqlite:{}", directory.path().join("sindri.db").display());
    let nowhere = directory.path().join("no/such/key").display().to_string();
    let run = |file: &str| Command::new(PROGRAM).args(["--database-url", &database, "--admin-key-file", file]).output();
    assert!(error_line(&run(&nowhere).unwrap()).contains("no/such/key"));
    let (process, mut lines) = start(directory.path());
    assert!(lines.next().unwrap().unwrap().contains("key is stored in"), "the next start creates a key");
    stop(process);
}

#[test]
fn print_config_has_every_setting_with_value_and_source_and_no_secret() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("b.toml");
    std::fs::write(&file, "workers = 2\n[database]\nurl = \"postgres://me:hidden@host/db\"\n").unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["--print-config", "--log", "json", "--config"]).arg(&file);
    command.env("SINDRI__BROKER__WEBHOOKS__ENCRYPTION_KEY", "hidden").env("SINDRI__BROKER__LOG__LEVEL", "debug");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let printed = String::from_utf8(output.stdout).unwrap().replace(&file.display().to_string(), "FILE");
    let expected = "\
listen                          127.0.0.1:3000            default
database.url                    postgres://me:***@host/db  file FILE:3
database.connections            8                         default
database.encrypt_bundles        false                     default
admin_key_file                  sindri-admin.key          default
print_admin_key                 false                     default
tls.certificate_file            -                         default
tls.key_file                    -                         default
log.form                        json                      flag --log
log.level                       debug                     environment SINDRI__BROKER__LOG__LEVEL
otlp.endpoint                   -                         default
limits.body_bytes               2097152                   default
limits.connections              16384                     default
limits.connections_per_peer     4096                      default
limits.wait_seconds_max         300                       default
trusted_proxies                 \"\"                        default
proxy_protocol                  false                     default
agents.offline_after_seconds    120                       default
retention.events_days           90                        default
retention.audit_days            365                       default
retention.revisions_days        365                       default
quotas.stacks                   0                         default
quotas.revision_bytes           0                         default
quotas.submissions_per_minute   0                         default
quotas.requests_per_minute      0                         default
oidc.issuer                     -                         default
oidc.audience                   -                         default
oidc.role_claim                 roles                     default
oidc.admin_roles                sindri-admin              default
oidc.reader_roles               sindri-reader             default
webhooks.allow_private_targets  false                     default
webhooks.encryption_key_file    -                         default
webhooks.encryption_key         ***                       environment SINDRI__BROKER__WEBHOOKS__ENCRYPTION_KEY
workers                         2                         file FILE:1
";
    assert_eq!(printed, expected);
}

/// Returns the log of a process after a read, an error and a write.
fn logged(form: &str, level: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let (mut process, mut lines) = start_with(directory.path(), &["--log", form, "--log-level", level]);
    let mut stream = TcpStream::connect(address(&mut lines)).unwrap();
    let key = std::fs::read_to_string(directory.path().join("key")).unwrap();
    let body = "content-length: 15\r\n\r\n{\"name\":\"shop\"}";
    write!(stream, "GET /api/v1/agents/a?b HTTP/1.1\r\nhost: b\r\nx-request-id: the-\"first\"\r\n\r\n").unwrap();
    let (host, id) = ("host: b\r\nconnection: close", "x-request-id: the-second");
    let mut responses = String::new();
    send(&mut stream);
    write!(stream, "POST /api/v1/generators HTTP/1.1\r\n{host}\r\n{id}\r\nauthorization: {}\r\n{body}", key.trim())
        .unwrap();
    stream.read_to_string(&mut responses).unwrap();
    assert!(
        responses.contains("HTTP/1.1 201") && responses.contains("\r\nx-request-id: the-second\r\n"),
        "{responses}"
    );
    let mut said = String::new();
    let mut errors = process.stderr.take().unwrap();
    stop(process);
    errors.read_to_string(&mut said).unwrap();
    assert!(!said.contains(key.trim()), "no key is logged");
    said
}

#[test]
fn json_lines_have_the_request_id_and_reads_are_not_logged_at_info() {
    let lines = logged("json", "info");
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let requests: Vec<_> = lines.iter().filter(|line| line["message"] == "request").collect();
    let seen: Vec<_> = requests.iter().map(|line| (&line["route"], &line["status"], &line["request_id"])).collect();
    assert_eq!(
        seen,
        [
            (&json!("/api/v1/agents/{id}"), &json!(401), &json!("the-\"first\"")),
            (&json!("/api/v1/generators"), &json!(201), &json!("the-second")),
        ]
    );
    assert!(lines.iter().any(|line| line["message"] == "shutting down" && line["request_id"].is_null()));
}

#[test]
fn pretty_lines_end_with_the_request_id_and_reads_are_logged_at_debug() {
    let lines = logged("pretty", "debug");
    let fields = "request method=POST route=\"/api/v1/generators\" status=201 actor=";
    assert!(lines.lines().any(|line| line.contains(fields) && line.ends_with(" request_id=the-second")), "{lines}");
    assert!(
        lines.contains(
            "DEBUG request method=GET route=\"/healthz\" status=200 actor=\"-\" client=127.0.0.1 request_id="
        ),
        "{lines}"
    );
    assert_eq!(logged("off", "debug"), "");
}

#[test]
fn log_lines_have_the_address_of_the_client_behind_a_trusted_proxy() {
    let directory = tempfile::tempdir().unwrap();
    let more = ["--trusted-proxies", "127.0.0.1", "--log", "pretty", "--log-level", "debug"];
    let (mut process, mut lines) = start_with(directory.path(), &more);
    let address = address(&mut lines);
    let call = |method: &str, path: &str, key: &str, body: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        let headers = format!("host: b\r\nconnection: close\r\nx-forwarded-for: 192.0.2.9\r\nauthorization: {key}");
        let length = body.len();
        write!(stream, "{method} /api/v1{path} HTTP/1.1\r\n{headers}\r\ncontent-length: {length}\r\n\r\n{body}")
            .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.1 20"), "{response}");
        response.split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    let key = std::fs::read_to_string(directory.path().join("key")).unwrap();
    let created = call("POST", "/agents", key.trim(), "{\"name\": \"east\", \"cluster_name\": \"c\"}");
    let created: Value = serde_json::from_str(&created).unwrap();
    let poll = format!("/agents/{}/target-state", created["agent"]["id"].as_str().unwrap());
    // The second one is answered without the router.
    for _ in 0..2 {
        call("GET", &poll, created["initial_pak"].as_str().unwrap(), "");
    }
    let mut errors = process.stderr.take().unwrap();
    stop(process);
    let mut said = String::new();
    errors.read_to_string(&mut said).unwrap();
    let count = |route: &str| {
        let is_line = |line: &&str| line.contains(&format!("route=\"{route}\"")) && line.contains(" client=192.0.2.9 ");
        said.lines().filter(is_line).count()
    };
    assert_eq!((count("/api/v1/agents"), count("/api/v1/agents/{id}/target-state")), (1, 2), "{said}");
}

#[test]
fn plain_http_on_an_address_of_the_network_is_reported() {
    let say = |listen: &str| {
        let directory = tempfile::tempdir().unwrap();
        let database = format!("sqlite:{}", directory.path().join("sindri.db").display());
        let mut command = Command::new(PROGRAM);
        command.args(["--listen", listen, "--database-url", &database, "--log", "pretty", "--admin-key-file"]);
        command.arg(directory.path().join("key")).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        ready(&mut BufReader::new(process.stdout.take().unwrap()).lines(), "http");
        let mut errors = process.stderr.take().unwrap();
        stop(process);
        let mut said = String::new();
        errors.read_to_string(&mut said).unwrap();
        said
    };
    let warning = "keys and bundles are sent without encryption: set tls.certificate_file and tls.key_file";
    let (all, local) = (say("0.0.0.0:0"), say("127.0.0.1:0"));
    assert!(all.contains(warning), "{all}");
    assert!(!local.contains(warning), "{local}");
}

#[test]
fn several_workers_serve_requests() {
    let directory = tempfile::tempdir().unwrap();
    let (process, mut lines) = start_with(directory.path(), &["--workers", "3"]);
    assert!(send(&mut TcpStream::connect(address(&mut lines)).unwrap()).starts_with("HTTP/1.1 200"));
    stop(process);
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| Command::new(PROGRAM).args(arguments).output().unwrap();
    assert!(error_line(&run(&["--database-url", "mysql:x"])).contains("must be like sqlite:PATH"));
    let missing = format!("sqlite:{}", directory.path().join("no/such/directory.db").display());
    assert!(error_line(&run(&["--database-url", &missing])).contains("no/such/directory.db"));
    let database = format!("sqlite:{}", directory.path().join("a.db").display());
    assert!(
        error_line(&run(&["--database-url", &database, "--listen", "nowhere"])).contains("cannot listen on nowhere")
    );
    let fresh = format!("sqlite:{}", directory.path().join("b.db").display());
    std::fs::write(directory.path().join("bad-key"), "nonsense").unwrap();
    let key_file = directory.path().join("bad-key").display().to_string();
    assert!(error_line(&run(&["--database-url", &fresh, "--admin-key-file", &key_file])).contains("not an access key"));
    assert!(error_line(&run(&["--listne", "a:1"])).contains("--listne"));
    assert!(error_line(&run(&["--config", "no/such/file"])).contains("no/such/file"));
    assert!(error_line(&run(&["--log", "loud"])).contains("log.form = \"loud\" (flag --log): must be one of pretty"));
    let unreachable = error_line(&run(&["--database-url", "postgres://a:hidden@127.0.0.1:1/d?sslmode=disable"]));
    assert!(unreachable.contains("postgres://a:***@127.0.0.1:1/d"), "{unreachable}");
    assert!(unreachable.contains("cannot be reached"), "{unreachable}");
    let unknown = Command::new(PROGRAM).env("SINDRI__BROKER__LISTEM", "a:1").output().unwrap();
    assert!(error_line(&unknown).contains("the nearest is SINDRI__BROKER__LISTEN"));
}

#[test]
fn a_connection_to_a_remote_database_without_tls_is_reported() {
    let warned = |parameters: &str| {
        let url = format!("postgres://a@192.0.2.1:1/d?connect_timeout=1{parameters}");
        let run = Command::new(PROGRAM).args(["--log", "pretty", "--database-url", &url]).output().unwrap();
        assert_eq!(run.status.code(), Some(2));
        String::from_utf8_lossy(&run.stderr).contains("the connection to the database may be in plain text")
    };
    assert!(warned("") && warned("&sslmode=disable") && !warned("&sslmode=verify-full"));
}

#[test]
fn a_broker_whose_disk_is_full_is_not_ready() {
    let directory = tempfile::tempdir().unwrap();
    let database = format!("sqlite:{}", directory.path().join("sindri.db").display());
    // A write beyond the limit on the size of files fails, as on a full disk, instead of ending the process.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh", PROGRAM, "--listen", "127.0.0.1:0", "--log", "off"]);
    command.args(["--database-url", &database, "--admin-key-file"]).arg(directory.path().join("key"));
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let address = ready(&mut BufReader::new(process.stdout.take().unwrap()).lines(), "http");
    let is_ready = || {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: b\r\nconnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response.starts_with("HTTP/1.1 200")
    };
    let limit = |bytes: &str| {
        let id = process.id().to_string();
        let set = Command::new("prlimit").args(["--pid", &id, &format!("--fsize={bytes}:unlimited")]).status();
        assert!(set.unwrap().success());
    };
    let await_ready = |expected: bool| {
        assert!((0..100).any(|_| is_ready() == expected || {
            pause();
            false
        }))
    };
    await_ready(true);
    limit("1");
    await_ready(false);
    limit("unlimited");
    await_ready(true);
    stop(process);
}

fn address(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    ready(lines, "http")
}

/// Returns the address after `READY http://`.
pub fn ready(lines: &mut Lines<BufReader<ChildStdout>>, scheme: &str) -> String {
    let start = format!("READY {scheme}://");
    let ready = lines.map(Result::unwrap).find_map(|line| line.strip_prefix(&start).map(str::to_owned));
    ready.expect("the process gets ready")
}

/// Requests /healthz on this connection and reads the response.
fn send(stream: &mut TcpStream) -> String {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: b\r\n\r\n").unwrap();
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\nok") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        response.push(byte[0]);
    }
    String::from_utf8(response).unwrap()
}

/// Returns the resident memory of a process in bytes.
fn resident(process: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn a_thousand_idle_connections_use_little_memory_and_requests_are_served() {
    const CONNECTIONS: u64 = 1_000;
    const BYTES_EACH_MAX: u64 = 32 * 1024;
    let directory = tempfile::tempdir().unwrap();
    let (process, mut lines) = start(directory.path());
    let address = address(&mut lines);
    send(&mut TcpStream::connect(&address).unwrap());
    let before = resident(&process);
    let mut idle: Vec<_> = (0..CONNECTIONS).map(|_| TcpStream::connect(&address).unwrap()).collect();
    idle.iter_mut().for_each(|stream| assert!(send(stream).starts_with("HTTP/1.1 200")));
    let each = resident(&process).saturating_sub(before) / CONNECTIONS;
    println!("{each} bytes per idle connection");
    assert!(each <= BYTES_EACH_MAX, "{each} bytes per idle connection");
    assert!(send(&mut TcpStream::connect(&address).unwrap()).starts_with("HTTP/1.1 200"));
    stop(process);
}

#[test]
fn a_request_in_progress_at_sigterm_is_finished() {
    let directory = tempfile::tempdir().unwrap();
    let (mut process, mut lines) = start(directory.path());
    let address = address(&mut lines);
    let key = std::fs::read_to_string(directory.path().join("key")).unwrap();
    let mut busy = TcpStream::connect(&address).unwrap();
    let head = "POST /api/v1/generators HTTP/1.1\r\nhost: b\r\ncontent-length: 16\r\nauthorization:";
    write!(busy, "{head} {}\r\n\r\n{{\"name\":", key.trim()).unwrap();
    let mut idle = TcpStream::connect(&address).unwrap();
    send(&mut idle);
    let killed = Command::new("kill").args(["-TERM", &process.id().to_string()]).status().unwrap();
    assert!(killed.success());
    // Idle connections close at once after the signal.
    assert_eq!(idle.read(&mut [0]).unwrap(), 0);
    write!(busy, " \"shop\"}}").unwrap();
    let mut response = String::new();
    busy.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 201"), "{response}");
    assert_eq!(process.wait().unwrap().code(), Some(0));
}
