//! How a program reaches the network, whichever arm runs it: a listener for servers, a connector for clients.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::net::{FastListener, HostPort};

/// One host's way into the network.
#[derive(Clone)]
pub enum Port {
    /// Of the fast arm.
    Fast(HostPort),
    /// Of turmoil, which knows by itself which host is running.
    Turmoil,
}

impl Port {
    /// Listens on a port of this host.
    pub async fn listen(&self, port: u16) -> io::Result<Listener> {
        Ok(match self {
            Port::Fast(host) => Listener::Fast(host.listen(port)?),
            Port::Turmoil => Listener::Turmoil(turmoil::net::TcpListener::bind(("0.0.0.0", port)).await?),
        })
    }

    /// Connects to a host by its name.
    pub async fn connect(&self, host: &str, port: u16) -> io::Result<Stream> {
        Ok(match self {
            Port::Fast(from) => Stream(Box::new(from.connect(host, port).await?)),
            Port::Turmoil => Stream(Box::new(turmoil::net::TcpStream::connect((host, port)).await?)),
        })
    }

    /// What HTTP clients take.
    pub fn connector(&self) -> Connector {
        Connector(self.clone())
    }
}

/// A listening socket of either arm.
pub enum Listener {
    /// Of the fast arm.
    Fast(FastListener),
    /// Of turmoil.
    Turmoil(turmoil::net::TcpListener),
}

impl axum::serve::Listener for Listener {
    type Io = Stream;
    type Addr = ();

    async fn accept(&mut self) -> (Stream, ()) {
        match self {
            Listener::Fast(listener) => (Stream(Box::new(listener.accept().await)), ()),
            Listener::Turmoil(listener) => loop {
                if let Ok((stream, _)) = listener.accept().await {
                    return (Stream(Box::new(stream)), ());
                }
            },
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}

trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// A byte stream of either arm.
pub struct Stream(Box<dyn Duplex>);

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
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// Connects to the host and port of a URI; the name of a host is its address.
#[derive(Clone)]
pub struct Connector(Port);

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Stream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let port = self.0.clone();
        Box::pin(async move {
            let host =
                uri.host().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the address has no host"))?;
            port.connect(host, uri.port_u16().unwrap_or(80)).await.map(TokioIo::new)
        })
    }
}
