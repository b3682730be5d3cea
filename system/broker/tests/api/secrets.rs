//! FIELD-08 at the broker: the content of a bundle is in no log line, error, audit entry or webhook, also if the request or
//! the disk fails.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::database_startup::send;
use crate::process::{PROGRAM, ready, stop};

/// The secret that must not appear.
const SECRET: &str = "open-sesame";
/// Limit on the files of the broker in units of 512 bytes, which simulates a full disk.
const FILE_BLOCKS: &str = "4000";

/// Starts a broker with limited file sizes and the log level trace.
fn start_on_a_small_disk(directory: &Path) -> (Child, String) {
    let database = format!("sqlite:{}", directory.join("sindri.db").display());
    // With SIGXFSZ ignored, the write fails with an error.
    let script = format!("trap '' XFSZ; ulimit -f {FILE_BLOCKS}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, PROGRAM, "--listen", "127.0.0.1:0", "--log", "json", "--log-level", "trace"]);
    command.args(["--database-url", &database, "--admin-key-file"]).arg(directory.join("key"));
    command.arg("--webhooks-encryption-key-file").arg(directory.join("encryption-key"));
    let log = File::create(directory.join("log")).unwrap();
    let mut process = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(process.stdout.take().unwrap()));
    let address = ready(&mut lines, "http");
    (process, address)
}

fn id_in(response: &str) -> String {
    let id = response.split(r#""id":""#).nth(1).and_then(|rest| rest.split('"').next());
    id.unwrap_or_else(|| panic!("{response}")).to_owned()
}

#[test]
fn the_content_of_a_bundle_is_in_no_log_line_error_or_report() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("encryption-key"), "ab".repeat(32)).unwrap();
    let (process, address) = start_on_a_small_disk(directory.path());
    let admin = std::fs::read_to_string(directory.path().join("key")).unwrap();
    let send_as_admin = |method: &str, path: &str, body: &str| send(&address, method, path, &admin, body);
    let generator = id_in(&send_as_admin("POST", "/generators", r#"{"name": "shop"}"#));
    let stack =
        id_in(&send_as_admin("POST", "/stacks", &format!(r#"{{"name": "web", "generator_id": "{generator}"}}"#)));
    let hook = r#"{"name": "hook", "url": "https://hooks.example.com/x", "event_types": ["*"]}"#;
    let hook = id_in(&send_as_admin("POST", "/webhooks", hook));
    let path = format!("/stacks/{stack}/deployment-objects");
    let secret = |padding: usize, end: &str| {
        let yaml = format!("apiVersion: v1\\nkind: Secret\\nmetadata: {{name: s}}\\nstringData: {{p: {SECRET}}}\\n");
        format!(r#"{{"yaml_content": "{yaml}# {}{end}"#, "x".repeat(padding))
    };
    assert!(send_as_admin("POST", &path, &secret(1, "\"}")).starts_with("HTTP/1.1 201"));
    let mut rejected = vec![
        send_as_admin("POST", &path, &secret(1, &format!("\\n---\\n{}{}\"}}", "[".repeat(150), "]".repeat(150)))),
        send_as_admin("POST", &path, &secret(1, "\\u0000\"}")),
        send_as_admin("POST", &path, &secret(1, "\"")),
        send_as_admin("POST", &path, &secret(1, "\", \"is_deletion_marker\": 1}")),
        send_as_admin("POST", &path, &secret(1, "\\n---\\nx: [\"}")),
        send_as_admin("POST", &path, &secret(3 << 20, "\"}")),
        send_as_admin("POST", &format!("/stacks/{generator}/deployment-objects"), &secret(1, "\"}")),
        send_as_admin("PUT", &path, &secret(1, "\"}")),
    ];
    let failed = (0..40)
        .map(|_| send_as_admin("POST", &path, &secret(100_000, "\"}")))
        .find(|response| !response.contains(" 201 "));
    let failed = failed.expect("the disk is full at some time");
    assert!(failed.starts_with("HTTP/1.1 500") && failed.contains("store_failed"), "{failed}");
    rejected.push(failed);
    for response in &rejected {
        assert!(!response.contains(SECRET), "{response}");
    }
    for path in ["/admin/audit-logs?limit=100", &format!("/webhooks/{hook}/deliveries"), "/fleet", "/agent-events"] {
        let response = send_as_admin("GET", path, "");
        assert!(response.starts_with("HTTP/1.1 200") && !response.contains(SECRET), "{path}: {response}");
    }
    assert!(send_as_admin("GET", &path, "").contains(SECRET), "the administrator cannot read the bundle");
    stop(process);
    let log = std::fs::read_to_string(directory.path().join("log")).unwrap();
    assert!(log.contains("the store failed"), "the cause is logged: {log}");
    assert!(!log.contains(SECRET), "{log}");
}
