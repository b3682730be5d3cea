//! Address and credentials of a cluster.

use std::fmt;
use std::path::PathBuf;

/// Text that is not shown in log lines, errors or debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text, to send it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A client certificate with its key.
#[derive(Clone, Debug)]
pub struct ClientCertificate {
    /// Certificate, as PEM.
    pub certificate_pem: String,
    /// Private key, as PEM.
    pub key_pem: Secret,
}

/// Address and credentials of a cluster.
#[derive(Clone, Debug)]
pub struct Access {
    /// `https://HOST:PORT`, or `http://…` for the simulated API server.
    pub server: String,
    /// Certificate authority of the server, as PEM.
    pub authority_pem: Option<String>,
    /// Token of an administrator.
    pub token: Option<Secret>,
    /// Certificate of an administrator.
    pub client_certificate: Option<ClientCertificate>,
    /// Kubeconfig file with the same data.
    pub kubeconfig: PathBuf,
    /// Context in the kubeconfig; `None`: the current one.
    pub context: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_does_not_contain_the_secret() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "Secret(…)");
    }
}
