//! The binary under the names `kube-apiserver` and `etcd`, with the flags that Go's test environments pass.
//!
//! `tests/envtest` is such an environment; building it takes minutes, and `docs/apiserver.md` says how to run it.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// Number of curl's attempts while a process starts, ten per second.
const POLLS: &str = "100";

/// A process that is killed when dropped.
struct RunningProcess(Child);

impl Drop for RunningProcess {
    fn drop(&mut self) {
        let _already_gone = self.0.kill();
        let _already_gone = self.0.wait();
    }
}

/// Starts the binary under another name.
fn start(home: &Path, name: &str, flags: &[String]) -> RunningProcess {
    let link = home.join(name);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sindri-apiserver"), &link).expect("a link");
    let mut command = Command::new(link);
    RunningProcess(command.args(flags).stderr(Stdio::null()).spawn().expect("the program starts"))
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Writes a certificate authority for clients, and a client certificate for an administrator.
fn write_client_certificates(home: &Path) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = params.self_signed(&key).expect("a certificate");
    let issuer = Issuer::new(params, key);
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::OrganizationName, "system:masters");
    params.distinguished_name.push(DnType::CommonName, "default");
    let key = KeyPair::generate().expect("a key");
    let client = params.signed_by(&key, &issuer).expect("a certificate");
    let write = |name: &str, text: String| std::fs::write(home.join(name), text).expect("a file");
    write("client-cert-auth-ca.crt", authority.pem());
    write("client.crt", client.pem());
    write("client.key", key.serialize_pem());
}

fn curl(arguments: &[&str]) -> String {
    let output = Command::new("curl")
        .args(["--silent", "--insecure", "--retry", POLLS, "--retry-delay", "0", "--retry-connrefused"])
        .args(arguments)
        .output()
        .expect("curl must be on the PATH for this test");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn test_environments_start_the_binary_as_etcd_and_kube_apiserver() {
    let home: TempDir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| home.path().join(name).display().to_string();
    let (etcd_port, port) = (free_port(), free_port());
    let etcd = [
        format!("--advertise-client-urls=http://127.0.0.1:{etcd_port}"),
        format!("--data-dir={}", path("data")),
        format!("--listen-client-urls=http://127.0.0.1:{etcd_port}"),
        "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
    ];
    let _etcd = start(home.path(), "etcd", &etcd);
    assert!(curl(&[&format!("http://127.0.0.1:{etcd_port}/health")]).contains("\"health\":\"true\""));

    write_client_certificates(home.path());
    let flags = [
        "--allow-privileged=true".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--cert-dir={}", home.path().display()),
        format!("--client-ca-file={}", path("client-cert-auth-ca.crt")),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        format!("--secure-port={port}"),
        format!("--service-account-issuer=https://127.0.0.1:{port}/"),
        format!("--service-account-key-file={}", path("sa-signer.crt")),
        format!("--service-account-signing-key-file={}", path("sa-signer.key")),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--some-flag-of-tomorrow=1".to_owned(),
    ];
    let _server = start(home.path(), "kube-apiserver", &flags);
    let url = format!("https://127.0.0.1:{port}");
    assert_eq!(curl(&[&format!("{url}/healthz")]), "ok");
    assert_eq!(curl(&[&format!("{url}/readyz")]), "ok");
    assert!(curl(&[&format!("{url}/api/v1/namespaces")]).contains("system:anonymous"));
    let (certificate, key) = (path("client.crt"), path("client.key"));
    let pod = r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    let pods = format!("{url}/api/v1/namespaces/default/pods");
    let json = ["-H", "Content-Type: application/json", "-d", pod];
    let created = curl(&[&["--cert", &certificate, "--key", &key, &pods][..], &json[..]].concat());
    assert!(created.contains("\"phase\": \"Pending\""), "a pod without an account: {created}");
}

#[test]
fn the_assets_are_programs_for_test_environments() {
    let home: TempDir = tempfile::tempdir().expect("a directory");
    let directory = home.path().join("assets");
    let make = || Command::new(env!("CARGO_BIN_EXE_sindri-apiserver")).arg("assets").arg(&directory).output();
    // The second run replaces the links of the first.
    for _ in 0..2 {
        let output = make().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.starts_with("export KUBEBUILDER_ASSETS=/"), "{text}");
    }
    for name in ["kube-apiserver", "etcd"] {
        let output = Command::new(directory.join(name)).arg("--help").output().expect("it runs");
        assert!(output.status.success(), "{name}");
    }
}

#[test]
fn help_lists_the_flags_and_exits_successfully() {
    let home: TempDir = tempfile::tempdir().expect("a directory");
    let link = home.path().join("kube-apiserver");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sindri-apiserver"), &link).expect("a link");
    let output = Command::new(&link).arg("--help").output().expect("it runs");
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && help.contains("--client-ca-file"), "{help}");
    assert!(!help.contains("insecure-port"), "test environments would pass it: {help}");
    let wrong = Command::new(&link).arg("--secure-port=none").output().expect("it runs");
    assert_eq!(wrong.status.code(), Some(2));
}
