//! Address of an API server, its certificate authority, and the administrator's token.

use std::fmt;
use std::sync::Arc;

use http::{HeaderValue, Request, header, request};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;

/// Address and credentials of an API server.
#[derive(Clone)]
pub struct Target {
    /// Host and port, also sent as `Host`.
    pub authority: String,
    /// Settings of TLS; `None` for plain HTTP.
    pub tls: Option<TlsSettings>,
    /// Administrator's token.
    pub token: Option<String>,
}

/// Settings of TLS.
#[derive(Clone)]
pub struct TlsSettings {
    /// Trusted certificates and algorithms.
    pub config: Arc<ClientConfig>,
    /// Name in the server's certificate.
    pub name: ServerName<'static>,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("authority", &self.authority).finish_non_exhaustive()
    }
}

/// Invalid address or certificates.
#[derive(Debug, Error)]
pub enum TargetError {
    /// The address is not `http` or `https` with a host and a port.
    #[error("{0:?} is not an address like https://127.0.0.1:6443")]
    Address(String),
    /// `https` without a certificate authority.
    #[error("{0} has no certificate authority")]
    NoAuthority(String),
    /// The certificate authority is invalid.
    #[error("the certificate authority cannot be used: {0}")]
    Authority(String),
    /// TLS cannot be configured.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

impl Target {
    /// Parses an address such as `https://127.0.0.1:6443`.
    pub fn new(server: &str, authority_pem: Option<&str>, token: Option<&str>) -> Result<Self, TargetError> {
        let wrong = || TargetError::Address(server.to_owned());
        let (scheme, authority) = server.trim_end_matches('/').split_once("://").ok_or_else(wrong)?;
        let (host, _port) = authority.rsplit_once(':').ok_or_else(wrong)?;
        let tls = match scheme {
            "http" => None,
            "https" => {
                let pem = authority_pem.ok_or_else(|| TargetError::NoAuthority(server.to_owned()))?;
                let name = ServerName::try_from(host.to_owned()).map_err(|_| wrong())?;
                Some(TlsSettings { config: Arc::new(client_config(pem)?), name })
            }
            _ => return Err(wrong()),
        };
        Ok(Self { authority: authority.to_owned(), tls, token: token.map(str::to_owned) })
    }

    /// Starts a request without credentials.
    pub fn request(&self, method: &str, path: &str) -> request::Builder {
        Request::builder().method(method).uri(path).header(header::HOST, self.authority.as_str())
    }

    /// Starts a request with the administrator's token, if there is one.
    pub fn administrator_request(&self, method: &str, path: &str) -> request::Builder {
        let request = self.request(method, path);
        let Some(token) = &self.token else { return request };
        match HeaderValue::try_from(format!("Bearer {token}")) {
            Ok(mut value) => {
                value.set_sensitive(true);
                request.header(header::AUTHORIZATION, value)
            }
            // The builder returns this error when it is finished.
            Err(_) => request.header(header::AUTHORIZATION, "\n"),
        }
    }
}

fn client_config(pem: &str) -> Result<ClientConfig, TargetError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| TargetError::Authority(error.to_string()))?;
        roots.add(certificate).map_err(|error| TargetError::Authority(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(TargetError::Authority("it contains no certificate".to_owned()));
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
    fn debug_output_does_not_contain_the_token() {
        let target = Target::new("http://127.0.0.1:1", None, Some("secret")).unwrap();
        assert!(!format!("{target:?}").contains("secret"));
        let request = target.administrator_request("GET", "/").body(()).unwrap();
        assert_eq!(request.headers()["authorization"], "Bearer secret");
        assert!(!format!("{request:?}").contains("secret"));
    }
}
