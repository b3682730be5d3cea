//! Sockets of a host, the same for both engines: a listener for servers, a connector for clients.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::net::{FastListener, NetworkHandle};

/// Access of one host to the network.
#[derive(Clone)]
pub enum HostNetwork {
    /// In the fast engine.
    Fast(NetworkHandle),
    /// In turmoil, which knows by itself which host is running.
    Turmoil,
}

impl HostNetwork {
    /// Listens on a port of this host.
    pub async fn listen(&self, port: u16) -> io::Result<Listener> {
        Ok(match self {
            HostNetwork::Fast(host) => Listener::Fast(host.listen(port)?),
            HostNetwork::Turmoil => Listener::Turmoil(turmoil::net::TcpListener::bind(("0.0.0.0", port)).await?),
        })
    }

    /// Connects to a host by its name. In the fast engine the connection breaks if it cannot deliver for `stall_max`; in turmoil
    /// nothing is sent twice.
    pub async fn connect(&self, host: &str, port: u16, stall_max: Option<Duration>) -> io::Result<Stream> {
        let io: Box<dyn Duplex> = match self {
            HostNetwork::Fast(from) => Box::new(from.connect(host, port, stall_max).await?),
            HostNetwork::Turmoil => Box::new(turmoil::net::TcpStream::connect((host, port)).await?),
        };
        Ok(Stream { io, peer: host.to_owned() })
    }

    /// Returns a connector for HTTP clients.
    pub fn connector(&self) -> Connector {
        Connector { network: self.clone(), stall_max: None }
    }
}

/// A listening socket.
pub enum Listener {
    /// In the fast engine.
    Fast(FastListener),
    /// In turmoil.
    Turmoil(turmoil::net::TcpListener),
}

impl Listener {
    /// Waits for the next connection.
    async fn next(&mut self) -> Stream {
        match self {
            Listener::Fast(listener) => {
                let (stream, peer) = listener.accept().await;
                Stream { io: Box::new(stream), peer }
            }
            Listener::Turmoil(listener) => loop {
                if let Ok((stream, address)) = listener.accept().await {
                    let peer = turmoil::reverse_lookup(address.ip()).unwrap_or_default();
                    return Stream { io: Box::new(stream), peer };
                }
            },
        }
    }
}

/// For the broker.
impl axum::serve::Listener for Listener {
    type Io = Stream;
    type Addr = ();

    async fn accept(&mut self) -> (Stream, ()) {
        (self.next().await, ())
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}

/// For the simulated API server.
impl sindri_apiserver::Listener for Listener {
    type Stream = Stream;

    async fn accept(&mut self) -> Stream {
        self.next().await
    }
}

trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// One end of a connection.
pub struct Stream {
    io: Box<dyn Duplex>,
    peer: String,
}

impl Stream {
    /// Returns the name of the host at the other end.
    pub fn peer(&self) -> &str {
        &self.peer
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

/// Connects to the host and port of a URI; the name of a host is its address.
#[derive(Clone)]
pub struct Connector {
    network: HostNetwork,
    stall_max: Option<Duration>,
}

impl Connector {
    /// Returns the connector with the time after which a connection breaks that cannot deliver.
    #[must_use]
    pub fn with_stall_max(self, stall_max: Duration) -> Self {
        Self { stall_max: Some(stall_max), ..self }
    }
}

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Stream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Self { network, stall_max } = self.clone();
        Box::pin(async move {
            let host =
                uri.host().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the address has no host"))?;
            network.connect(host, uri.port_u16().unwrap_or(80), stall_max).await.map(TokioIo::new)
        })
    }
}
