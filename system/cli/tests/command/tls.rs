//! A broker with TLS: trusted authorities, and errors of certificates.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{Broker, command, expect_advice, expect_failure, run_sindri};

/// A broker with a certificate for 127.0.0.1 that it has issued itself.
fn start_broker(directory: &Path) -> Broker {
    let issued = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (directory.join("certificate.pem"), directory.join("key.pem"));
    std::fs::write(&certificate, issued.cert.pem()).unwrap();
    std::fs::write(&key, issued.signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let flags = ["--tls-certificate-file", certificate.to_str().unwrap(), "--tls-key-file", key.to_str().unwrap()];
    Broker::start_with(&flags)
}

#[test]
fn a_certificate_is_trusted_by_a_file_of_authorities_and_otherwise_the_error_names_the_flag() {
    let directory = tempfile::tempdir().unwrap();
    let broker = start_broker(directory.path());
    let authorities = directory.path().join("certificate.pem");
    let authorities = authorities.to_str().unwrap();
    assert!(broker.address.starts_with("https://"), "{}", broker.address);
    broker.run_successfully(&["stack", "list", "--broker-ca-file", authorities]);
    let unknown = broker.run(&["stack", "list"]);
    assert!(expect_failure(&unknown, 1).contains("its certificate "), "{unknown:?}");
    assert!(expect_advice(&unknown, 1).starts_with("set --broker-ca-file"));
    let other_name = broker.address.replacen("127.0.0.1", "localhost", 1);
    let other_name = run_sindri(&other_name, &broker.key_path(), &["stack", "list", "--broker-ca-file", authorities]);
    assert!(expect_failure(&other_name, 1).contains("is for 127.0.0.1, not for localhost"), "{other_name:?}");
    let plain = broker.address.replacen("https://", "http://", 1);
    let plain = run_sindri(&plain, &broker.key_path(), &["stack", "list"]);
    assert_eq!(expect_advice(&plain, 1), format!("use {} if the broker has TLS", broker.address));
    let missing = broker.run(&["stack", "list", "--broker-ca-file", "/missing.pem"]);
    assert!(expect_failure(&missing, 2).contains("the file of certificate authorities /missing.pem cannot be read"));
}

#[test]
fn trusted_authorities_are_loaded_for_https_only() {
    let broker = Broker::start();
    let run = |address: &str| {
        let mut process = command(address, &broker.key_path(), &["stack", "list"]);
        process.env("SSL_CERT_FILE", "/missing").env("SSL_CERT_DIR", "/missing").output().unwrap()
    };
    assert!(run(&broker.address).status.success());
    let https = run(&broker.address.replacen("http://", "https://", 1));
    assert!(expect_failure(&https, 2).contains("no trusted certificate authorities"), "{https:?}");
}
