//! Guarded connections to receivers: a host name is resolved once, all its addresses are checked, and the connection goes
//! to one of these addresses. A second resolution, which could return others, does not happen.
//!
//! The resolver, the dialer and the trusted authorities are passed in. Error texts of libraries are not passed on, because
//! they may repeat the URL.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tower_service::Service;

use super::target::{TargetError, TargetPolicy, check_addresses, parse_address};

/// Time limit for one address before the next one is tried.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Limit on the addresses of a name that are tried.
const ADDRESSES_TRIED_MAX: usize = 4;
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// Resolves host names.
pub trait Resolve: Clone + Send + Sync + 'static {
    /// Returns every address of `host`, with the port.
    fn resolve(&self, host: String, port: u16) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send;
}

/// Connects to addresses.
pub trait Dial: Clone + Send + Sync + 'static {
    /// One connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Connects to exactly this address.
    fn dial(&self, address: SocketAddr) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// Returns the TLS configuration with the trusted authorities; `None` if there are none. Called at the first connection
/// with TLS.
pub type Trust = Arc<dyn Fn() -> Option<Arc<ClientConfig>> + Send + Sync>;

/// A connection cannot be made.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ConnectError {
    #[error("the host name cannot be resolved")]
    Unresolved,
    #[error(transparent)]
    Forbidden(TargetError),
    #[error("no connection: {0}")]
    Unreachable(io::ErrorKind),
    #[error("this machine has no certificate authorities, so no certificate can be verified")]
    NoTrust,
    #[error("no TLS connection: {0}")]
    Tls(&'static str),
}

/// Connects to the host of a URI if all its addresses are allowed. With TLS, the certificate must be valid for the host.
#[derive(Clone)]
pub struct GuardedConnector<R, D> {
    resolver: R,
    dialer: D,
    trust: Trust,
    policy: TargetPolicy,
}

impl<R: Resolve, D: Dial> GuardedConnector<R, D> {
    /// Makes a connector that rejects addresses that `policy` does not allow.
    pub fn new(resolver: R, dialer: D, trust: Trust, policy: TargetPolicy) -> Self {
        Self { resolver, dialer, trust, policy }
    }

    async fn connect(&self, uri: &Uri) -> Result<TokioIo<Box<dyn Duplex>>, ConnectError> {
        let is_tls = uri.scheme() != Some(&Scheme::HTTP);
        let port = uri.port_u16().unwrap_or(if is_tls { HTTPS_PORT } else { HTTP_PORT });
        let host = uri.host().unwrap_or_default();
        let addresses = self.resolve(host, port).await?;
        check_addresses(&addresses, self.policy).map_err(ConnectError::Forbidden)?;
        let stream = self.dial(&addresses).await?;
        let stream: Box<dyn Duplex> =
            if is_tls { Box::new(self.handshake(host, stream).await?) } else { Box::new(stream) };
        Ok(TokioIo::new(stream))
    }

    /// Returns the addresses of a host; an IP address is returned as it is.
    async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
        if let Some(address) = parse_address(host) {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        self.resolver.resolve(host.to_owned(), port).await.map_err(|_| ConnectError::Unresolved)
    }

    async fn dial(&self, addresses: &[SocketAddr]) -> Result<D::Stream, ConnectError> {
        let mut last_error = ConnectError::Unresolved;
        for address in addresses.iter().take(ADDRESSES_TRIED_MAX) {
            match tokio::time::timeout(CONNECT_MAX, self.dialer.dial(*address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last_error = ConnectError::Unreachable(error.kind()),
                Err(_) => last_error = ConnectError::Unreachable(io::ErrorKind::TimedOut),
            }
        }
        Err(last_error)
    }

    async fn handshake(&self, host: &str, stream: D::Stream) -> Result<impl Duplex + use<R, D>, ConnectError> {
        let unbracketed = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(unbracketed)
            .map_err(|_| ConnectError::Tls("the host name is not valid in a certificate"))?;
        let config = (self.trust)().ok_or(ConnectError::NoTrust)?;
        let connected = TlsConnector::from(config).connect(name, stream).await;
        connected.map_err(|error| ConnectError::Tls(describe_tls_error(&error)))
    }
}

/// Both directions of a connection.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Duplex for T {}

/// Describes an error of the handshake without the names that a certificate or a library may contain.
fn describe_tls_error(error: &io::Error) -> &'static str {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(error)) => match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "the certificate has expired",
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the certificate is not valid yet"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "the certificate is for another host"
            }
            CertificateError::UnknownIssuer => "the certificate has an unknown issuer",
            CertificateError::Revoked => "the certificate is revoked",
            // The enum is not exhaustive.
            _ => "the certificate is not accepted",
        },
        Some(_) => "the handshake failed",
        None => "the connection was closed during the handshake",
    }
}

impl<R: Resolve, D: Dial> Service<Uri> for GuardedConnector<R, D> {
    type Response = TokioIo<Box<dyn Duplex>>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.connect(&uri).await })
    }
}
