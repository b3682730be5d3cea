//! TLS to the broker: a real handshake, and one line for each problem of a certificate.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};
use sindri_broker::Tls;

use crate::support::{agent, broker, error_line, in_time, listener, serve};

struct Pair {
    certificate: String,
    key: String,
}

impl Pair {
    /// Returns a self-signed certificate for a name, valid until the end of a year.
    fn new(name: &str, issuer: &str, until: i32) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, issuer);
        (params.not_before, params.not_after) = (date_time_ymd(2015, 1, 1), date_time_ymd(until, 12, 31));
        Self { certificate: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
    }

    fn tls(&self) -> Option<Tls> {
        Some(Tls::from_pem(self.certificate.as_bytes(), self.key.as_bytes()).unwrap())
    }
}

/// Returns a command of an agent that connects over TLS and trusts these authorities.
fn agent_with_ca(directory: &Path, address: SocketAddr, authorities: &str) -> Command {
    let (ca, kubeconfig) = (directory.join("ca.pem"), directory.join("kubeconfig"));
    std::fs::write(&ca, authorities).unwrap();
    let cluster = "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: a, user: {}}]\n";
    let context = "contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n";
    std::fs::write(&kubeconfig, format!("{cluster}{context}")).unwrap();
    let mut command = agent();
    command.args(["--name", "east", "--cluster", "demo", "--log-level", "warn", "--broker"]);
    command.arg(format!("https://{address}")).arg("--broker-ca-file").arg(ca).arg("--kubeconfig").arg(kubeconfig);
    command.env("SINDRI__AGENT__PAK", "brokkr_BRwrong1_nothing");
    command
}

/// Returns the first log line of an agent that keeps running.
fn first_line(command: &mut Command) -> String {
    let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
    let line = BufReader::new(process.stderr.take().unwrap()).lines().next().unwrap().unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    line
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_broker_with_a_trusted_certificate_is_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let pair = Pair::new("127.0.0.1", "us", 2100);
    let (listener, address) = listener().await;
    let _broker = serve(&broker().await, listener, pair.tls());
    let output = agent_with_ca(directory.path(), address, &pair.certificate).output().unwrap();
    // The broker's own error about the key arrived through TLS; the copy of the target state cannot be emptied without a cluster.
    let lines = String::from_utf8_lossy(&output.stderr);
    let expected = ["cannot find agent east of cluster demo: the broker does not accept the key", "is not emptied: "];
    assert!(expected.iter().all(|text| lines.contains(text)) && lines.lines().count() == 2, "{lines}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_untrusted_certificate_gives_one_line_with_the_reason() {
    let us = Pair::new("127.0.0.1", "us", 2100);
    let expired = Pair::new("127.0.0.1", "us", 2020);
    let (unknown, impostor) = (Pair::new("127.0.0.1", "them", 2100), Pair::new("127.0.0.1", "us", 2100));
    let elsewhere = Pair::new("broker.example", "us", 2100);
    for (served, trusted, expected) in [
        (&expired, &expired, "its certificate has expired (it was valid until 2020-12-31T00:00:00Z)"),
        (&unknown, &us, "its certificate was issued by "),
        (&impostor, &us, "its certificate names a trusted issuer but was not signed by it"),
        (&elsewhere, &elsewhere, "its certificate is for broker.example, not for 127.0.0.1"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let (listener, address) = listener().await;
        let _broker = serve(&broker().await, listener, served.tls());
        let line = first_line(&mut agent_with_ca(directory.path(), address, &trusted.certificate));
        let expected = format!("the broker at https://{address} cannot be reached: {expected}");
        assert!(line.contains(&expected), "{line}");
        assert!(!line.contains("nothing"), "the key is in no line");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_broker_without_tls_is_reported_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let (listener, address) = listener().await;
    let _broker = serve(&broker().await, listener, None);
    let pair = Pair::new("127.0.0.1", "us", 2100);
    let line = first_line(&mut agent_with_ca(directory.path(), address, &pair.certificate));
    assert!(line.ends_with("cannot be reached: it does not speak TLS"), "{line}");
}

#[tokio::test]
async fn unreadable_authorities_give_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let (_listener, address) = in_time(listener()).await;
    let run = |authorities: &str| error_line(&agent_with_ca(directory.path(), address, authorities).output().unwrap());
    assert!(run("nonsense").contains("ca.pem: it contains no certificate"));
    let broken = "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
    assert!(run(broken).contains("ca.pem: the certificates cannot be read"), "{}", run(broken));
    let mut command = agent_with_ca(directory.path(), address, "");
    std::fs::remove_file(directory.path().join("ca.pem")).unwrap();
    assert!(error_line(&command.output().unwrap()).contains("ca.pem: No such file"));
}
