//! Class of the reason for which no response arrived.

use std::error::Error;
use std::io;

use crate::root_cause::find_source;

/// Reason for which no response arrived, as far as it decides what to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionFailure {
    /// No process listens at the address.
    Refused,
    /// The name of the host has no address.
    UnknownHost,
    /// The certificate is not trusted, expired or for another name.
    Certificate,
    /// The server does not speak TLS, and the URL is https.
    NotTls,
    /// The server does not speak HTTP: it expects TLS, and the URL is http.
    NotHttp,
    /// Any other reason, such as a timeout.
    Other,
}

impl ConnectionFailure {
    /// Classifies an error by its causes.
    pub(crate) fn from_error(error: &(dyn Error + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(failure) = classify(error) {
                return failure;
            }
            cause = find_source(error);
        }
        Self::Other
    }
}

fn classify(error: &(dyn Error + 'static)) -> Option<ConnectionFailure> {
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return match error {
            rustls::Error::InvalidCertificate(_) => Some(ConnectionFailure::Certificate),
            rustls::Error::InvalidMessage(_) => Some(ConnectionFailure::NotTls),
            _ => None,
        };
    }
    if let Some(error) = error.downcast_ref::<hyper::Error>() {
        // A connection that is closed without a response says nothing about TLS: the broker may be restarting.
        return error.is_parse().then_some(ConnectionFailure::NotHttp);
    }
    let error = error.downcast_ref::<io::Error>()?;
    if error.kind() == io::ErrorKind::ConnectionRefused {
        return Some(ConnectionFailure::Refused);
    }
    // The library of the system reports it without a kind of its own.
    let is_lookup = error.get_ref().is_none_or(|inner| !inner.is::<rustls::Error>())
        && error.to_string().starts_with("failed to lookup address");
    is_lookup.then_some(ConnectionFailure::UnknownHost)
}
