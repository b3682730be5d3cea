//! One trace and one request id from the command line through the broker to the agent, all as processes, and a collector.
//!
//! The binaries of the broker and of the command must be next to that of the agent.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::support::{agent, cluster, in_time, listener};

const CANARY: &str = "not-in-any-trace";

/// A span as the collector received it.
#[derive(Clone, Debug)]
struct ReceivedSpan {
    service: String,
    name: String,
    trace: String,
    span: String,
    parent: String,
}

/// A collector, and everything that it received.
#[derive(Clone, Default)]
struct Collector {
    spans: Arc<Mutex<Vec<ReceivedSpan>>>,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Collector {
    /// Serves the collector until the result is dropped; returns its address too.
    async fn serve(&self) -> (String, JoinSet<()>) {
        let (listener, address) = listener().await;
        let collector = self.clone();
        let receive = move |body: Bytes| async move { collector.receive(&body) };
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            axum::serve(listener, Router::new().route("/v1/traces", post(receive))).await.unwrap();
        });
        (format!("http://{address}"), serving)
    }

    fn receive(&self, body: &[u8]) {
        self.bytes.lock().unwrap().extend_from_slice(body);
        for resource in ExportTraceServiceRequest::decode(body).unwrap().resource_spans {
            let attributes = &resource.resource.as_ref().unwrap().attributes;
            let service = attributes.iter().find(|attribute| attribute.key == "service.name").unwrap();
            let service = format!("{:?}", service.value);
            let names = ["sindri-broker", "sindri-agent", "sindri"];
            let service = names.into_iter().find(|name| service.contains(&format!("\"{name}\""))).unwrap_or("?");
            for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                self.spans.lock().unwrap().push(ReceivedSpan {
                    service: service.to_owned(),
                    name: span.name,
                    trace: hex(&span.trace_id),
                    span: hex(&span.span_id),
                    parent: hex(&span.parent_span_id),
                });
            }
        }
    }

    /// Waits until a span with this service and name was received.
    async fn wait_for(&self, service: &str, name: &str) -> ReceivedSpan {
        loop {
            let spans = self.spans.lock().unwrap().clone();
            if let Some(span) = spans.into_iter().find(|span| span.service == service && span.name == name) {
                return span;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn program(name: &str) -> Command {
    let path = Path::new(env!("CARGO_BIN_EXE_sindri-agent")).with_file_name(name);
    assert!(path.exists(), "build it first: {}", path.display());
    let mut command = Command::new(path);
    command.env_clear();
    command
}

fn start_broker(directory: &Path, collector: &str) -> (Process, String) {
    let mut process = program("sindri-broker")
        .args(["--listen", "127.0.0.1:0", "--log", "json", "--otlp-endpoint", collector, "--database-url"])
        .arg(format!("sqlite:{}", directory.join("sindri.db").display()))
        .arg("--admin-key-file")
        .arg(directory.join("key"))
        .stdout(Stdio::piped())
        .stderr(File::create(directory.join("broker.log")).unwrap())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let ready = lines.find_map(|line| line.unwrap().strip_prefix("READY ").map(str::to_owned));
    (Process(process), ready.expect("the broker did not start"))
}

fn sindri(directory: &Path, broker: &str, arguments: &[&str]) -> String {
    let mut command = program("sindri");
    command.env("SINDRI_BROKER", broker).env("SINDRI_KEY_FILE", directory.join("key")).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn write_file(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Returns the request ids in the lines of a log that have this text.
fn request_ids(log: &Path, text: &str) -> BTreeSet<String> {
    let lines = std::fs::read_to_string(log).unwrap();
    let lines = lines.lines().filter(|line| line.contains(text));
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["request_id"].as_str().map(str::to_owned);
    lines.filter_map(id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_trace_and_one_request_id_go_from_the_command_to_the_agent() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let collector = Collector::default();
    let (endpoint, _collecting) = collector.serve().await;
    let (api, api_address) = listener().await;
    let _cluster = cluster(api);
    let (_broker, broker) = start_broker(directory, &endpoint);
    let created = sindri(directory, &broker, &["agent", "create", "east", "--cluster", "demo"]);
    let key = created.rsplit(' ').next().unwrap().trim().to_owned();
    sindri(directory, &broker, &["agent", "activate", "east"]);
    sindri(directory, &broker, &["stack", "create", "web"]);
    sindri(directory, &broker, &["target", "web", "east"]);
    let bundle = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: a, namespace: default}}\nstringData: {{x: {CANARY}}}\n"
    );
    let bundle = write_file(directory, "web.yaml", &bundle);
    let kubeconfig = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{server: 'http://{api_address}'}}}}], \
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}], users: [{{name: u, user: {{}}}}]}}"
    );
    let kubeconfig = write_file(directory, "kubeconfig", &kubeconfig);
    let mut command = agent();
    command
        .args(["--name", "east", "--cluster", "demo", "--polling-interval", "1", "--log", "json", "--broker", &broker])
        .args(["--otlp-endpoint", &endpoint, "--kubeconfig", kubeconfig.to_str().unwrap()])
        .env("SINDRI__AGENT__PAK", &key)
        .stderr(File::create(directory.join("agent.log")).unwrap());
    let _agent = Process(command.spawn().unwrap());
    sindri(directory, &broker, &["apply", "web", "-f", bundle.to_str().unwrap(), "--otlp-endpoint", &endpoint]);

    let root = in_time(collector.wait_for("sindri", "sindri")).await;
    assert_eq!(root.parent, "");
    let submission = "POST /api/v1/stacks/{id}/deployment-objects";
    let submitted = in_time(collector.wait_for("sindri-broker", submission)).await;
    let passed = in_time(collector.wait_for("sindri-agent", "pass")).await;
    let reported = in_time(collector.wait_for("sindri-broker", "POST /api/v1/agents/{id}/events")).await;
    for span in [&submitted, &passed, &reported] {
        assert_eq!(span.trace, root.trace, "{span:?}");
    }
    assert_eq!(passed.parent, submitted.span, "the pass follows from the submission");
    assert_ne!(reported.parent, "");
    // The id of the trace is the request id, in the logs of both.
    let expected = BTreeSet::from([root.trace.clone()]);
    let route = "/api/v1/stacks/{id}/deployment-objects";
    assert_eq!(request_ids(&directory.join("broker.log"), route), expected);
    assert_eq!(request_ids(&directory.join("broker.log"), "/api/v1/agents/{id}/events"), expected);
    assert_eq!(request_ids(&directory.join("agent.log"), "reported"), expected);
    let bytes = collector.bytes.lock().unwrap();
    let admin_key = std::fs::read_to_string(directory.join("key")).unwrap();
    for secret in [CANARY, &key, admin_key.trim()] {
        assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()), "a span contains a secret");
    }
}
