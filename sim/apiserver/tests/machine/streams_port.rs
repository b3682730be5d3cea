//! Streams of pods on a real port: through the real `kubectl`, and message by message.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream as PlainStream;
use std::process::Stdio;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::kubectl::Server;

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: main, image: 'nginx:1', env: [{name: COLOUR, value: blue}]}
  - {name: side, image: 'busybox:1', stdin: true}
";

/// The two ways in which kubectl opens streams.
const WAYS: [(&str, &str); 2] = [("WebSocket", "true"), ("SPDY", "false")];

/// Result of a command of kubectl.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    stdout: String,
    stderr: String,
    code: Option<i32>,
}

fn outcome(stdout: &str, code: i32) -> Outcome {
    Outcome { stdout: stdout.to_owned(), stderr: String::new(), code: Some(code) }
}

impl Server {
    fn with_pod(flags: &[&str]) -> Self {
        let server = Self::start_with(flags);
        server.kubectl(&["apply", "-f", "-"], POD);
        server.kubectl(&["wait", "--for=condition=Ready", "pod/web", "--timeout=20s"], "");
        server
    }

    /// Runs kubectl over WebSockets, or over SPDY.
    fn stream(&self, websockets: &str, arguments: &[&str], input: &str) -> Outcome {
        let mut command = self.command(arguments);
        command.env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", websockets);
        let mut kubectl = command.spawn().expect("kubectl must be on the PATH for this test");
        // A command that does not read its input may have ended.
        let _unread = kubectl.stdin.take().expect("piped").write_all(input.as_bytes());
        let output = kubectl.wait_with_output().expect("kubectl ends");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Outcome { stdout: text(&output.stdout), stderr: text(&output.stderr), code: output.status.code() }
    }

    /// Posts a rule of the administrator on a port without TLS.
    fn post_rule(&self, path: &str, rule: &Value) {
        let address = self.url.trim_start_matches("http://");
        let mut stream = PlainStream::connect(address).expect("the server accepts");
        let body = rule.to_string();
        let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}", body.len());
        stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).expect("the server reads");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("a response");
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    }
}

#[test]
fn kubectl_runs_commands() {
    let server = Server::with_pod(&["--plain-http"]);
    let rule = json!({"pod": "web", "container": "main", "command": "psql -c", "stdout": "1 row\n", "stderr": "slow\n", "exitCode": 3});
    server.post_rule("/sindri/exec", &rule);
    for (way, websockets) in WAYS {
        let run = |arguments: &[&str], input: &str| {
            server.stream(websockets, &[&["exec", "web", "-c", "main"], arguments].concat(), input)
        };
        assert_eq!(run(&["--", "echo", "a", "b c"], ""), outcome("a b c\n", 0), "{way}");
        assert_eq!(run(&["-i", "--", "cat"], "one\ntwo\n"), outcome("one\ntwo\n", 0), "{way}");
        let long = "0123456789abcdef".repeat(64 * 1024);
        assert_eq!(run(&["-i", "--", "cat"], &long), outcome(&long, 0), "{way}");
        assert_eq!(run(&["--", "sh", "-c", "echo $COLOUR; hostname"], ""), outcome("blue\nweb\n", 0), "{way}");
        assert_eq!(run(&["-i", "--", "sh"], "echo typed\nexit 0\n"), outcome("typed\n", 0), "{way}");
        assert_eq!(run(&["--", "nginx", "-t"], ""), outcome("", 0), "{way}");
        let failed = run(&["--", "sh", "-c", "echo out; echo oops >&2; exit 7"], "");
        assert_eq!((failed.stdout.as_str(), failed.code), ("out\n", Some(7)), "{way}: {failed:?}");
        assert_eq!(failed.stderr, "oops\ncommand terminated with exit code 7\n", "{way}");
        let programmed = run(&["--", "psql", "-c", "select 1"], "");
        let errors = "slow\ncommand terminated with exit code 3\n";
        assert_eq!(
            (programmed.stdout.as_str(), programmed.stderr.as_str(), programmed.code),
            ("1 row\n", errors, Some(3)),
            "{way}"
        );
    }
}

#[test]
fn kubectl_reports_errors_of_streams() {
    let server = Server::with_pod(&[]);
    let mut broken = POD.replace("name: web", "name: broken");
    broken = broken.replace(
        "metadata: {name: broken}",
        "metadata: {name: broken, annotations: {sindri.dev/pod-fate: image-pull-error}}",
    );
    server.kubectl(&["apply", "-f", "-"], &broken);
    server.kubectl(
        &["wait", "--for=jsonpath={.status.containerStatuses[0].state.waiting}", "pod/broken", "--timeout=20s"],
        "",
    );
    for (way, websockets) in WAYS {
        let error = |arguments: &[&str]| {
            let failed = server.stream(websockets, arguments, "");
            assert_eq!(failed.code, Some(1), "{way}: {failed:?}");
            failed.stderr
        };
        let stderr = error(&["exec", "web", "-c", "nope", "--", "ls"]);
        assert!(
            stderr.contains("container nope is not valid for pod web") || stderr.contains("nope not found"),
            "{way}: {stderr}"
        );
        let stderr = error(&["exec", "none", "--", "ls"]);
        assert!(stderr.contains("pods \"none\" not found"), "{way}: {stderr}");
        let stderr = error(&["exec", "broken", "-c", "main", "--", "ls"]);
        assert!(stderr.contains("unable to upgrade connection: container not found (\"main\")"), "{way}: {stderr}");
        let stderr = error(&["exec", "web", "-c", "main", "--as=guest", "--", "ls"]);
        assert!(stderr.contains("(Forbidden)"), "{way}: {stderr}");
    }
}

#[test]
fn kubectl_attaches_and_copies() {
    let server = Server::with_pod(&["--plain-http"]);
    server.post_rule("/sindri/pods", &json!({"pod": "web", "log": "line of the log\n"}));
    let file = server.home.path().join("file");
    std::fs::write(&file, "content").expect("a file");
    for (way, websockets) in WAYS {
        let attached = server.stream(websockets, &["attach", "-i", "-q", "web", "-c", "side"], "hello\n");
        assert_eq!(
            (attached.stdout.as_str(), attached.code),
            ("line of the log\nhello\n", Some(0)),
            "{way}: {attached:?}"
        );
        let copied = server.stream(websockets, &["cp", &file.display().to_string(), "web:/tmp/file", "-c", "main"], "");
        assert_eq!(copied.code, Some(0), "{way}: {copied:?}");
    }
}

#[test]
fn kubectl_forwards_ports() {
    let server = Server::with_pod(&["--plain-http"]);
    server.post_rule("/sindri/ports", &json!({"port": 6379, "reply": "+PONG\r\n"}));
    server.post_rule("/sindri/ports", &json!({"port": 81, "refuse": true}));
    for (way, websockets) in WAYS {
        let mut command = server.command(&["port-forward", "pod/web", ":80", ":6379", ":81", "--address", "127.0.0.1"]);
        command.env("KUBECTL_PORT_FORWARD_WEBSOCKETS", websockets).stderr(Stdio::piped());
        let mut kubectl = command.spawn().expect("kubectl must be on the PATH for this test");
        let mut lines = BufReader::new(kubectl.stdout.take().expect("piped")).lines();
        let mut address = || {
            let line = lines.next().expect("a line").expect("a text");
            line.split_whitespace().nth(2).expect("an address").to_owned()
        };
        let addresses = [address(), address(), address()];
        let mut errors = BufReader::new(kubectl.stderr.take().expect("piped"));
        for _ in 0..3 {
            let mut echo = PlainStream::connect(&addresses[0]).expect("kubectl accepts");
            echo.write_all(b"hello").expect("kubectl reads");
            let mut bytes = [0; 5];
            echo.read_exact(&mut bytes).expect("the echo");
            assert_eq!(&bytes, b"hello", "{way}");
        }
        let read = |address: &str, input: &str| {
            let mut stream = PlainStream::connect(address).expect("kubectl accepts");
            stream.write_all(input.as_bytes()).expect("kubectl reads");
            let mut text = String::new();
            let _reset = stream.read_to_string(&mut text);
            text
        };
        let page = read(&addresses[0], "GET / HTTP/1.1\r\nhost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK") && page.ends_with("web 80\n"), "{way}: {page}");
        assert_eq!(read(&addresses[1], "PING\r\n"), "+PONG\r\n", "{way}");
        assert_eq!(read(&addresses[2], "x"), "", "{way}: nothing listens");
        let mut error = String::new();
        errors.read_line(&mut error).expect("an error");
        assert!(error.contains("connection refused"), "{way}: {error}");
        kubectl.kill().expect("kubectl runs");
        kubectl.wait().expect("kubectl ends");
    }
}

/// A WebSocket of a client.
struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    async fn open(server: &Server, target: &str, subprotocol: &str) -> Self {
        let address = server.url.trim_start_matches("http://");
        let stream = TcpStream::connect(address).await.expect("the server accepts");
        let url = format!("ws://{address}/api/v1/namespaces/default/pods/{target}");
        let mut request = url.into_client_request().expect("a request");
        request.headers_mut().insert("sec-websocket-protocol", subprotocol.parse().expect("a header"));
        let (socket, response) = tokio_tungstenite::client_async(request, stream).await.expect("an upgrade");
        assert_eq!(response.headers()["sec-websocket-protocol"], subprotocol);
        Self(socket)
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.0.send(Message::Binary(bytes.to_vec().into())).await.expect("the server reads");
    }

    /// Returns the next message with data, or none at the end of the connection.
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.0.next().await? {
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(message) if message.is_binary() || message.is_text() => return Some(message.into_data().to_vec()),
                Ok(_) => {}
            }
        }
    }

    /// Returns the data of each channel until the connection ends.
    async fn read_all(&mut self) -> [String; 4] {
        let mut channels: [Vec<u8>; 4] = Default::default();
        while let Some(message) = self.next().await {
            let (channel, bytes) = message.split_first().expect("a channel");
            channels[usize::from(*channel)].extend(bytes);
        }
        channels.map(|bytes| String::from_utf8(bytes).expect("a text"))
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(future)
}

#[test]
fn channels_of_a_websocket_carry_streams_and_the_result() {
    let server = Server::with_pod(&["--plain-http"]);
    let run = "web/exec?container=main&stdout=true&stderr=true";
    block_on(async {
        let mut socket = Socket::open(&server, &format!("{run}&command=echo&command=a"), "v4.channel.k8s.io").await;
        assert_eq!(socket.next().await.as_deref(), Some(&[1][..]), "an empty message shows that the streams are open");
        let success = r#"{"metadata":{},"status":"Success"}"#;
        assert_eq!(socket.read_all().await, ["", "a\n", "", success]);

        let failing = format!("{run}&command=sh&command=-c&command=exit%205");
        for (subprotocol, message) in [
            ("v4.channel.k8s.io", "error executing command [sh -c exit 5], exit code 5"),
            ("v5.channel.k8s.io", "command terminated with exit code 5"),
        ] {
            let mut socket = Socket::open(&server, &failing, subprotocol).await;
            let status: Value = serde_json::from_str(&socket.read_all().await[3]).expect("a Status");
            let expected = json!({
                "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
                "message": format!("command terminated with non-zero exit code: {message}"),
                "details": {"causes": [{"reason": "ExitCode", "message": "5"}]},
            });
            assert_eq!(status, expected);
        }
        let mut old = Socket::open(&server, &failing, "channel.k8s.io").await;
        let text = "command terminated with non-zero exit code: error executing command [sh -c exit 5], exit code 5";
        assert_eq!(old.read_all().await[3], text, "older subprotocols report the text of an error");
    });
}

#[test]
fn input_ends_by_a_message_and_the_terminal_accepts_its_size() {
    let server = Server::with_pod(&["--plain-http"]);
    block_on(async {
        let cat = "web/exec?container=main&stdin=true&stdout=true&command=cat";
        let mut socket = Socket::open(&server, cat, "v5.channel.k8s.io").await;
        for message in
            [&b"\x00hello"[..], b"\x04{\"Width\":80,\"Height\":24}", b"", b"\x09ignored", b"\x00 world", b"\xff\x00"]
        {
            socket.send(message).await;
        }
        assert_eq!(socket.read_all().await[1], "hello world");

        let mut socket = Socket::open(&server, cat, "v4.base64.channel.k8s.io").await;
        assert_eq!(socket.next().await.as_deref(), Some(&b"1"[..]));
        socket.send(b"0aGVsbG8=").await;
        assert_eq!(socket.next().await.as_deref(), Some(&b"1aGVsbG8="[..]));

        let terminal = "web/exec?container=main&stdin=true&stdout=true&tty=true&command=sh";
        let mut socket = Socket::open(&server, terminal, "v5.channel.k8s.io").await;
        socket.send(b"\x00echo a\rexit 4\r").await;
        let [_, shown, _, status] = socket.read_all().await;
        assert!(shown.contains("echo a\r\n") && shown.contains("\r\na\r\n"), "{shown:?}");
        assert!(status.contains("\"message\":\"4\""), "{status}");
    });
}

#[test]
fn errors_of_the_kubelet_arrive_on_the_streams_of_the_newest_subprotocol() {
    let server = Server::with_pod(&["--plain-http"]);
    block_on(async {
        for (target, message) in [
            (
                "web/exec?container=main&command=ls",
                "unable to upgrade connection: you must specify at least 1 of stdin, stdout, stderr",
            ),
            ("web/exec?container=main&stdout=true", "args must not be empty"),
        ] {
            let mut socket = Socket::open(&server, target, "v5.channel.k8s.io").await;
            let status: Value = serde_json::from_str(&socket.read_all().await[3]).expect("a Status");
            assert_eq!((&status["reason"], &status["code"]), (&json!("InternalError"), &json!(500)));
            assert!(status["message"].as_str().is_some_and(|text| text.contains(message)), "{status}");
        }
    });
}

#[test]
fn streams_end_with_their_pod() {
    let server = Server::with_pod(&["--plain-http"]);
    block_on(async {
        let sleeping = "web/exec?container=main&stdout=true&command=sleep&command=1000";
        let mut sleeping = Socket::open(&server, sleeping, "v5.channel.k8s.io").await;
        let mut attached = Socket::open(&server, "web/attach?container=main&stdout=true", "v4.channel.k8s.io").await;
        let mut ports = Socket::open(&server, "web/portforward?ports=80,81", "v4.channel.k8s.io").await;
        for expected in [&[0, 80, 0][..], &[1, 80, 0], &[2, 81, 0], &[3, 81, 0]] {
            assert_eq!(ports.next().await.as_deref(), Some(expected), "each channel begins with its port");
        }
        ports.send(b"\x02hello").await;
        assert_eq!(ports.next().await.as_deref(), Some(&b"\x02hello"[..]));
        server.kubectl(&["delete", "pod", "web", "--wait=true"], "");
        assert!(sleeping.read_all().await[3].contains("\"message\":\"137\""), "the process is killed");
        let [_, log, _, status] = attached.read_all().await;
        assert_eq!((log.as_str(), status.contains("Success")), ("main started\n", true));
        assert_eq!(ports.next().await, None);
    });
}

#[test]
fn faults_apply_to_streams() {
    let server = Server::with_pod(&["--plain-http"]);
    let refuse = json!({"verb": "get", "resource": "pods", "path": "/api/v1/namespaces/default/pods/web/exec", "times": 1,
        "fault": {"refuse": {"status": 503}}});
    server.post_rule("/sindri/faults", &refuse);
    block_on(async {
        let address = server.url.trim_start_matches("http://");
        let url =
            format!("ws://{address}/api/v1/namespaces/default/pods/web/exec?container=main&stdout=1&command=true");
        let stream = TcpStream::connect(address).await.expect("the server accepts");
        let request = url.into_client_request().expect("a request");
        let error = tokio_tungstenite::client_async(request, stream).await.expect_err("the fault");
        assert!(error.to_string().contains("503"), "{error}");
        let run = "web/exec?container=main&stdout=1&command=true";
        let mut socket = Socket::open(&server, run, "v5.channel.k8s.io").await;
        assert!(socket.read_all().await[3].contains("Success"), "the fault applied once");
    });
}
