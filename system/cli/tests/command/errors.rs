//! Errors: one sentence, the exit code, and the next step.

use std::io::Read;
use std::net::TcpListener;

use crate::support::{Broker, expect_advice, expect_failure, run_sindri};

#[test]
fn invalid_usage_is_one_sentence_and_exits_with_2() {
    let broker = Broker::start();
    broker.run_successfully(&["stack", "create", "web"]);
    assert_eq!(broker.expect_usage_error(&["target", "web", "missing"]), "sindri: there is no agent missing");
    assert_eq!(broker.expect_usage_error(&["events", "missing"]), "sindri: there is no agent and no stack missing");
    assert_eq!(
        broker.expect_usage_error(&["stack", "create", "x", "--generator", "g"]),
        "sindri: there is no generator g"
    );
    assert!(
        broker
            .expect_usage_error(&["stack", "create", "web"])
            .ends_with("the broker responded with 409: stack web exists already")
    );
    assert!(broker.expect_usage_error(&["apply", "web", "-f", "missing.yaml"]).contains("missing.yaml cannot be read"));
    let broken = broker.write_file("broken.yaml", "kind: ConfigMap\n---\na: [\n");
    let message = broker.expect_usage_error(&["apply", "web", "-f", broken.to_str().unwrap()]);
    assert!(message.contains("broken.yaml: document 2, line"), "{message}");
    let unknown_key = broker.write_file("unknown_key", "brokkr_BRabcdef_nothing\n");
    let message = expect_failure(&run_sindri(&broker.address, &unknown_key, &["agent", "list"]), 2);
    assert_eq!(message, "sindri: cannot list the agents: the broker does not accept the key: the key is unknown");
}

#[test]
fn an_empty_list_is_a_sentence_for_people_and_an_empty_document_for_programs() {
    let broker = Broker::start();
    for (command, sentence) in [
        (
            ["stack", "list"].as_slice(),
            "the key can read no stack: sindri apply NAME --file FILE --create creates one\n",
        ),
        (&["agent", "list"], "the key can read no agent: sindri agent create NAME --cluster CLUSTER creates one\n"),
        (&["status"], "the key can read no stack: sindri apply NAME --file FILE --create creates one\n"),
        (&["approvals"], "no plan waits for an approval\n"),
    ] {
        let output = broker.run(command);
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8_lossy(&output.stderr), sentence, "{command:?}");
        assert!(output.stdout.is_empty(), "{command:?}");
    }
    let output = broker.run(&["stack", "list", "-o", "json"]);
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (b"[]\n".as_slice(), b"".as_slice()));
}

#[test]
fn an_unreachable_broker_is_named_and_exits_with_1() {
    let broker = Broker::start();
    let (address, key) = (broker.address.clone(), broker.write_file("copy", "brokkr_BRabcdef_nothing"));
    let key_copy = tempfile::NamedTempFile::new().unwrap();
    std::fs::copy(key, key_copy.path()).unwrap();
    drop(broker);
    let message = expect_failure(&run_sindri(&address, key_copy.path(), &["agent", "list"]), 1);
    assert!(message.starts_with(&format!("sindri: cannot list the agents: the broker at {address} cannot be reached")));
    assert_eq!(message.lines().count(), 1);
}

#[test]
fn an_error_says_what_to_do_next() {
    let broker = Broker::start();
    broker.run_successfully(&["stack", "create", "checkout"]);
    let unknown = broker.expect_usage_error(&["stack", "show", "chekout"]);
    assert_eq!(unknown, "sindri: there is no stack chekout: did you mean checkout?");
    let unknown = broker.run(&["stack", "show", "other"]);
    assert_eq!(expect_advice(&unknown, 2), "see the names that the key may read with sindri stack list");
    let file = broker.write_file("a.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
    let unknown = broker.run(&["apply", "other", "-f", file.to_str().unwrap()]);
    assert_eq!(expect_advice(&unknown, 2), "to create the stack, add --create");
    let exists = broker.run(&["stack", "create", "checkout"]);
    assert!(expect_advice(&exists, 2).contains("another name"));
    let key = broker.write_file("unknown_key", "brokkr_BRabcdef_nothing\n");
    let rejected = run_sindri(&broker.address, &key, &["stack", "list"]);
    assert!(expect_advice(&rejected, 2).starts_with("check the key: --key-file"));
    let large = broker.write_file(
        "large.yaml",
        &format!("kind: ConfigMap\napiVersion: v1\nmetadata: {{name: a}}\ndata: {{a: {}}}\n", "x".repeat(3_000_000)),
    );
    let refused = broker.run(&["apply", "checkout", "-f", large.to_str().unwrap()]);
    assert!(expect_failure(&refused, 2).ends_with("413: the body is larger than 2097152 bytes"));
    assert!(expect_advice(&refused, 2).contains("limits.body_bytes"));
    let https = broker.address.replacen("http://", "https://", 1);
    let not_tls = run_sindri(&https, &broker.key_path(), &["stack", "list"]);
    assert_eq!(expect_advice(&not_tls, 1), format!("use {}", broker.address));
    let unknown_host = run_sindri("http://broker.invalid:1", &key, &["stack", "list"]);
    assert!(expect_advice(&unknown_host, 1).contains("name of the host"));
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let refused = run_sindri(&format!("http://127.0.0.1:{port}"), &key, &["stack", "list"]);
    assert!(expect_advice(&refused, 1).contains("check that the broker runs"));
    let no_url = run_sindri("localhost:3000", &key, &["stack", "list"]);
    assert!(expect_failure(&no_url, 2).ends_with("is not the URL of a broker, which is like https://HOST:PORT"));
}

#[test]
fn a_connection_that_is_closed_without_a_response_says_nothing_about_tls() {
    let broker = Broker::start();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "a thread of a test that ends with it")]
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            // A request that was not read would reset the connection.
            assert!(connection.unwrap().read(&mut [0; 16 * 1024]).unwrap() > 0);
        }
    });
    let closed = run_sindri(&address, &broker.key_path(), &["stack", "list"]);
    let message = String::from_utf8_lossy(&closed.stderr);
    assert!(closed.status.code() == Some(1) && !message.contains("https://"), "{message}");
}

#[test]
fn a_closed_standard_error_does_not_change_the_exit_code() {
    let broker = Broker::start();
    let mut command = crate::support::command(&broker.address, &broker.key_path(), &["stack", "show", "missing"]);
    let mut process = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(process.stderr.take());
    assert_eq!(process.wait().unwrap().code(), Some(2));
}
