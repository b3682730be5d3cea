//! TLS: a real handshake, replaced certificates, and invalid files.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use sindri_broker::{Limits, ServeOptions, Tls};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::process::{PROGRAM, error_line, ready, start_with, stop};
use crate::test_server::{SHORT, TestServer};

struct Pair {
    certificate: String,
    key: String,
}

fn pair() -> Pair {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["broker".to_owned()]).unwrap();
    Pair { certificate: cert.pem(), key: signing_key.serialize_pem() }
}

fn write(directory: &Path, pair: &Pair) {
    std::fs::write(directory.join("tls.crt"), &pair.certificate).unwrap();
    std::fs::write(directory.join("tls.key"), &pair.key).unwrap();
    set_key_mode(directory, 0o600);
}

fn set_key_mode(directory: &Path, mode: u32) {
    std::fs::set_permissions(directory.join("tls.key"), std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Opens a connection that trusts only this certificate.
fn connect(address: &str, trusted: &Pair) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.certificate.as_bytes()).unwrap()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = ClientConnection::new(Arc::new(client), "broker".try_into().unwrap()).unwrap();
    let mut stream = StreamOwned::new(client, TcpStream::connect(address)?);
    send(&mut stream)?;
    Ok(stream)
}

fn send(stream: &mut (impl Read + Write)) -> io::Result<()> {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: broker\r\n\r\n")?;
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\nok") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        response.push(byte[0]);
    }
    assert!(response.starts_with(b"HTTP/1.1 200"));
    Ok(())
}

#[test]
fn new_connections_get_a_replaced_certificate_and_old_ones_continue() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (pair(), pair());
    write(directory.path(), &first);
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (certificate, key) = (file("tls.crt"), file("tls.key"));
    let flags = ["--tls-certificate-file", &certificate, "--tls-key-file", &key];
    let (process, mut lines) = start_with(directory.path(), &flags);
    let address = ready(&mut lines, "https");
    let mut old = connect(&address, &first).unwrap();
    assert!(connect(&address, &second).is_err());

    let hangup = || assert!(Command::new("kill").args(["-HUP", &process.id().to_string()]).status().unwrap().success());
    write(directory.path(), &Pair { certificate: "nonsense".to_owned(), key: second.key.clone() });
    hangup();
    connect(&address, &first).expect("a broken pair replaces nothing");
    write(directory.path(), &second);
    set_key_mode(directory.path(), 0o644);
    hangup();
    connect(&address, &first).expect("a key that all users may read replaces nothing");
    set_key_mode(directory.path(), 0o440);
    hangup();
    // The signal may be handled after the next connection.
    while connect(&address, &second).is_err() {}
    assert!(connect(&address, &first).is_err());
    send(&mut old).expect("a connection goes on with what it began with");
    stop(process);
}

#[test]
fn a_start_with_invalid_files_prints_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (pair(), pair());
    let database = format!("sqlite:{}", directory.path().join("a.db").display());
    let (certificate, key) = (directory.path().join("tls.crt"), directory.path().join("tls.key"));
    let run = || {
        let mut command = Command::new(PROGRAM);
        command.args(["--listen", "127.0.0.1:0", "--database-url", &database, "--tls-certificate-file"]);
        error_line(&command.arg(&certificate).arg("--tls-key-file").arg(&key).output().unwrap())
    };
    assert!(run().contains("tls.crt: No such file"));
    write(directory.path(), &first);
    for (mode, problem) in
        [(0o604, "all users may read it (mode 604)"), (0o620, "other users may write to it (mode 620)")]
    {
        set_key_mode(directory.path(), mode);
        let refused = run();
        assert!(refused.contains(&format!("tls.key: {problem}")), "{refused}");
    }
    write(directory.path(), &Pair { certificate: first.certificate.clone(), key: second.key });
    let mismatch = run();
    assert!(mismatch.contains("tls.crt: the certificate and the key cannot be used"), "{mismatch}");
    write(directory.path(), &Pair { certificate: "nonsense".to_owned(), key: first.key.clone() });
    assert!(run().contains("the file has no certificate"));
    write(directory.path(), &Pair { certificate: first.certificate, key: "nonsense".to_owned() });
    assert!(run().contains("the key cannot be read"));
}

#[tokio::test]
async fn a_client_without_a_handshake_is_disconnected() {
    let pair = pair();
    let tls = Tls::from_pem(pair.certificate.as_bytes(), pair.key.as_bytes()).unwrap();
    let limits = Limits { handshake_time_max: SHORT, ..Limits::default() };
    let server = TestServer::with(ServeOptions { tls: Some(tls), limits, ..ServeOptions::default() }).await;
    server.connect().await.expect_close().await;
}
