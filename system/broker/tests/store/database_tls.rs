//! TLS to a real PostgreSQL server: the authority and the name of its certificate.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use sindri_broker::{PostgresError, PostgresStore, Store};

use crate::support::fresh_schema;
use crate::tls_server::TlsServer;

/// A certificate authority, and its certificate in PEM.
fn authority() -> (String, Issuer<'static, KeyPair>) {
    let mut parameters = CertificateParams::default();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    (parameters.self_signed(&key).unwrap().pem(), Issuer::new(parameters, key))
}

#[tokio::test]
async fn the_certificate_of_the_database_server_is_verified() {
    let Some(url) = fresh_schema().await else { return };
    let (certificate, issuer) = authority();
    let (other_certificate, _) = authority();
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let server = TlsServer::start(&url, &server.pem(), &key.serialize_pem()).await;
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (right, wrong) = (file("right.pem", &certificate), file("wrong.pem", &other_certificate));
    let open = async |host: &str, parameters: &str| {
        let url = format!("postgres://sindri@{host}:{}/postgres?{parameters}", server.port);
        PostgresStore::open(&url, 1).await
    };

    for parameters in [
        format!("sslmode=verify-full&sslrootcert={right}"),
        format!("sslmode=require&sslrootcert={right}"),
        format!("sslrootcert={right}"),
        "sslmode=disable".to_owned(),
    ] {
        open("localhost", &parameters).await.unwrap().get_position().await.unwrap();
    }
    open("127.0.0.1", &format!("sslmode=verify-ca&sslrootcert={right}")).await.unwrap();

    let refused = async |host: &str, parameters: &str| match open(host, parameters).await {
        Err(error @ PostgresError::Certificate(_)) => error.to_string(),
        other => panic!("{host} {parameters}: {other:?}"),
    };
    for mode in ["verify-full", "verify-ca", "require", "prefer"] {
        let message = refused("localhost", &format!("sslmode={mode}&sslrootcert={wrong}")).await;
        assert!(message.contains("its issuer is not trusted; set sslrootcert"), "{message}");
    }
    let message = refused("localhost", "sslmode=verify-full").await;
    assert!(message.contains("its issuer is not trusted; set sslrootcert"), "{message}");
    let message = refused("127.0.0.1", &format!("sslmode=verify-full&sslrootcert={right}")).await;
    assert!(message.contains("127.0.0.1") && message.contains("localhost"), "{message}");
}
