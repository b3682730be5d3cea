//! Where the API server is, whom to trust, and who asks.

use std::fmt;
use std::sync::Arc;

use http::{HeaderValue, Request, header, request};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;

/// An API server as the administrator reaches it.
#[derive(Clone)]
pub struct Target {
    /// Host and port, as they are dialled and sent as `Host`.
    pub authority: String,
    /// How the connection is encrypted, if it is.
    pub encryption: Option<Encryption>,
    /// The administrator's token.
    pub token: Option<String>,
}

/// The part of a connection that TLS needs.
#[derive(Clone)]
pub struct Encryption {
    /// Trusted certificates and algorithms.
    pub config: Arc<ClientConfig>,
    /// The name that the server must prove to have.
    pub name: ServerName<'static>,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("authority", &self.authority).finish_non_exhaustive()
    }
}

/// What was said about a server cannot be used.
#[derive(Debug, Error)]
pub enum TargetError {
    /// Neither `http` nor `https` with a host and a port.
    #[error("{0:?} is not an address like https://127.0.0.1:6443")]
    Address(String),
    /// Encrypted, but whom to trust was not said.
    #[error("{0} has no certificate authority")]
    NoAuthority(String),
    /// Whom to trust cannot be read.
    #[error("the certificate authority cannot be used: {0}")]
    Authority(String),
    /// No common ground for TLS.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

impl Target {
    /// The server at an address like `https://127.0.0.1:6443`.
    pub fn new(server: &str, authority_pem: Option<&str>, token: Option<&str>) -> Result<Self, TargetError> {
        let wrong = || TargetError::Address(server.to_owned());
        let (scheme, authority) = server.trim_end_matches('/').split_once("://").ok_or_else(wrong)?;
        let (host, _port) = authority.rsplit_once(':').ok_or_else(wrong)?;
        let encryption = match scheme {
            "http" => None,
            "https" => {
                let pem = authority_pem.ok_or_else(|| TargetError::NoAuthority(server.to_owned()))?;
                let name = ServerName::try_from(host.to_owned()).map_err(|_| wrong())?;
                Some(Encryption { config: Arc::new(trusting(pem)?), name })
            }
            _ => return Err(wrong()),
        };
        Ok(Self { authority: authority.to_owned(), encryption, token: token.map(str::to_owned) })
    }

    /// The start of a request, from nobody.
    pub fn request(&self, method: &str, path: &str) -> request::Builder {
        Request::builder().method(method).uri(path).header(header::HOST, self.authority.as_str())
    }

    /// The start of a request of the administrator, if there is one.
    pub fn administrator_request(&self, method: &str, path: &str) -> request::Builder {
        let request = self.request(method, path);
        let Some(token) = &self.token else { return request };
        match HeaderValue::try_from(format!("Bearer {token}")) {
            Ok(mut value) => {
                value.set_sensitive(true);
                request.header(header::AUTHORIZATION, value)
            }
            // The builder keeps the mistake and tells it when it is finished.
            Err(_) => request.header(header::AUTHORIZATION, "\n"),
        }
    }
}

fn trusting(pem: &str) -> Result<ClientConfig, TargetError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| TargetError::Authority(error.to_string()))?;
        roots.add(certificate).map_err(|error| TargetError::Authority(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(TargetError::Authority("it holds no certificate".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_a_scheme_a_port_and_for_https_an_authority() {
        assert!(Target::new("http://127.0.0.1:1", None, None).is_ok());
        for wrong in ["127.0.0.1:1", "ftp://127.0.0.1:1", "http://localhost"] {
            assert!(matches!(Target::new(wrong, None, None), Err(TargetError::Address(_))), "{wrong}");
        }
        assert!(matches!(Target::new("https://127.0.0.1:1", None, None), Err(TargetError::NoAuthority(_))));
        assert!(matches!(Target::new("https://127.0.0.1:1", Some("x"), None), Err(TargetError::Authority(_))));
    }

    #[test]
    fn the_token_is_in_no_debug_form() {
        let target = Target::new("http://127.0.0.1:1", None, Some("secret")).unwrap();
        assert!(!format!("{target:?}").contains("secret"));
        let request = target.administrator_request("GET", "/").body(()).unwrap();
        assert_eq!(request.headers()["authorization"], "Bearer secret");
        assert!(!format!("{request:?}").contains("secret"));
    }
}
