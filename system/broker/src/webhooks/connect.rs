//! Connections to receivers, guarded: a name is resolved once, every address that it has is checked, and one of those
//! very addresses is connected to. There is no second resolution that could answer differently.
//!
//! How names are resolved, how connections are made and whose certificates are believed is handed in. The texts of
//! libraries are not passed on: they may repeat the URL.

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

use super::target::{TargetError, TargetPolicy, as_address, check_addresses};

/// How long one address may take before the next one is tried.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// The most addresses of a name that are tried.
const ADDRESSES_TRIED_MAX: usize = 4;
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// Finds the addresses of a name.
pub trait Resolve: Clone + Send + Sync + 'static {
    /// Every address of `host`, with the port.
    fn resolve(&self, host: String, port: u16) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send;
}

/// Makes connections to addresses.
pub trait Dial: Clone + Send + Sync + 'static {
    /// One connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Connects to exactly this address.
    fn dial(&self, address: SocketAddr) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// Whose certificates are believed. Asked at the first secure connection; none if this machine trusts nobody.
pub type Trust = Arc<dyn Fn() -> Option<Arc<ClientConfig>> + Send + Sync>;

/// A connection cannot be made.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ConnectError {
    #[error("the host's name cannot be resolved")]
    Unresolved,
    #[error(transparent)]
    Refused(TargetError),
    #[error("no connection: {0}")]
    Unreachable(io::ErrorKind),
    #[error("this machine has no certificates of authorities, so that nobody can be trusted")]
    NoTrust,
    #[error("no secure connection: {0}")]
    Insecure(&'static str),
}

/// Connects to a URI's host, if all its addresses may be called. With TLS, the certificate must be that host's.
#[derive(Clone)]
pub struct GuardedConnector<R, D> {
    resolver: R,
    dialer: D,
    trust: Trust,
    policy: TargetPolicy,
}

impl<R: Resolve, D: Dial> GuardedConnector<R, D> {
    /// A connector that resolves, connects and trusts as it is told, and refuses what `policy` does not allow.
    pub fn new(resolver: R, dialer: D, trust: Trust, policy: TargetPolicy) -> Self {
        Self { resolver, dialer, trust, policy }
    }

    async fn connect(&self, uri: &Uri) -> Result<TokioIo<Box<dyn Duplex>>, ConnectError> {
        let secure = uri.scheme() != Some(&Scheme::HTTP);
        let port = uri.port_u16().unwrap_or(if secure { HTTPS_PORT } else { HTTP_PORT });
        let host = uri.host().unwrap_or_default();
        let addresses = self.resolve(host, port).await?;
        check_addresses(&addresses, self.policy).map_err(ConnectError::Refused)?;
        let stream = self.dial(&addresses).await?;
        let stream: Box<dyn Duplex> =
            if secure { Box::new(self.secure(host, stream).await?) } else { Box::new(stream) };
        Ok(TokioIo::new(stream))
    }

    /// The addresses of a host; that of an address is itself.
    async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
        if let Some(address) = as_address(host) {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        self.resolver.resolve(host.to_owned(), port).await.map_err(|_| ConnectError::Unresolved)
    }

    async fn dial(&self, addresses: &[SocketAddr]) -> Result<D::Stream, ConnectError> {
        let mut fault = ConnectError::Unresolved;
        for address in addresses.iter().take(ADDRESSES_TRIED_MAX) {
            match tokio::time::timeout(CONNECT_MAX, self.dialer.dial(*address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => fault = ConnectError::Unreachable(error.kind()),
                Err(_) => fault = ConnectError::Unreachable(io::ErrorKind::TimedOut),
            }
        }
        Err(fault)
    }

    async fn secure(&self, host: &str, stream: D::Stream) -> Result<impl Duplex + use<R, D>, ConnectError> {
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name =
            ServerName::try_from(bare).map_err(|_| ConnectError::Insecure("its host cannot have a certificate"))?;
        let config = (self.trust)().ok_or(ConnectError::NoTrust)?;
        let shaken = TlsConnector::from(config).connect(name, stream).await;
        shaken.map_err(|error| ConnectError::Insecure(words(&error)))
    }
}

/// Both directions of a connection.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Duplex for T {}

/// What went wrong in a handshake, without the names that a certificate or a library has in it.
fn words(error: &io::Error) -> &'static str {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(fault)) => match fault {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired",
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is that of another host"
            }
            CertificateError::UnknownIssuer => "its certificate is of an unknown issuer",
            CertificateError::Revoked => "its certificate is revoked",
            // The library may learn to tell more.
            _ => "its certificate is not accepted",
        },
        Some(_) => "the handshake failed",
        None => "the connection broke off during the handshake",
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
