//! How a cluster is reached.

use std::fmt;
use std::path::PathBuf;

/// Text that is in no log line, error or debug form.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for whoever has to send it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A certificate with its key.
#[derive(Clone, Debug)]
pub struct ClientCertificate {
    /// The certificate, as PEM.
    pub certificate_pem: String,
    /// Its key, as PEM.
    pub key_pem: Secret,
}

/// How to reach a cluster.
#[derive(Clone, Debug)]
pub struct Access {
    /// `https://HOST:PORT`, or `http://…` for the simulated one.
    pub server: String,
    /// Who signed the server's certificate.
    pub authority_pem: Option<String>,
    /// The token of an administrator.
    pub token: Option<Secret>,
    /// A certificate of an administrator.
    pub client_certificate: Option<ClientCertificate>,
    /// The same for programs that read a kubeconfig.
    pub kubeconfig: PathBuf,
    /// The context to use in it, if it is not the current one.
    pub context: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_show_itself() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "Secret(…)");
    }
}
