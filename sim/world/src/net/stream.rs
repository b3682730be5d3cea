//! The network as programs see it: listeners, connects and byte streams.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::network::{ConnectionId, HostId, Network, Side};

/// The network, shared by the engine and every stream on it. Only one thread uses it; the lock makes streams `Send`, which
/// the programs require.
#[derive(Clone)]
pub struct SharedNetwork(Arc<Mutex<Network>>);

impl SharedNetwork {
    /// Wraps a network.
    pub fn new(network: Network) -> Self {
        Self(Arc::new(Mutex::new(network)))
    }

    /// Locks the network.
    pub fn lock(&self) -> MutexGuard<'_, Network> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the access of one host.
    pub fn handle_for(&self, host: HostId) -> NetworkHandle {
        NetworkHandle { network: self.clone(), host }
    }
}

/// Access of one host to the network.
#[derive(Clone)]
pub struct NetworkHandle {
    network: SharedNetwork,
    host: HostId,
}

impl NetworkHandle {
    /// Listens on a port of this host.
    pub fn listen(&self, port: u16) -> io::Result<FastListener> {
        let incarnation = self.network.lock().listen(self.host, port)?;
        Ok(FastListener { network: self.network.clone(), host: self.host, incarnation, port })
    }

    /// Connects to a port of a host by its name. The connection breaks if it cannot deliver for `stall_max`, or for the long
    /// time after which a kernel gives up.
    pub async fn connect(&self, host: &str, port: u16, stall_max: Option<Duration>) -> io::Result<FastStream> {
        let id = {
            let mut network = self.network.lock();
            let id = network.start_connect(self.host, host, port)?;
            stall_max.into_iter().for_each(|stall_max| network.set_stall_max(id, stall_max));
            id
        };
        // Created before the connect is decided, so that dropping this future closes it.
        let stream = FastStream { network: self.network.clone(), id, side: Side::Client };
        poll_fn(|context| match self.network.lock().poll_connect(id, context.waker()) {
            Some(decided) => Poll::Ready(decided),
            None => Poll::Pending,
        })
        .await?;
        Ok(stream)
    }
}

/// A listening socket.
pub struct FastListener {
    network: SharedNetwork,
    host: HostId,
    incarnation: u32,
    port: u16,
}

impl FastListener {
    /// Waits for the next connection; returns it with the name of the host that connected.
    pub async fn accept(&mut self) -> (FastStream, String) {
        let id = poll_fn(|context| match self.network.lock().accept(self.host, self.port, context.waker()) {
            Some(id) => Poll::Ready(id),
            None => Poll::Pending,
        })
        .await;
        let client = self.network.lock().client_name(id);
        (FastStream { network: self.network.clone(), id, side: Side::Server }, client)
    }
}

impl Drop for FastListener {
    fn drop(&mut self) {
        self.network.lock().stop_listening(self.host, self.incarnation, self.port);
    }
}

/// One end of a connection.
pub struct FastStream {
    network: SharedNetwork,
    id: ConnectionId,
    side: Side,
}

impl Drop for FastStream {
    fn drop(&mut self) {
        self.network.lock().release(self.id, self.side);
    }
}

impl AsyncRead for FastStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.network.lock().read(self.id, self.side, buffer.remaining(), context.waker()) {
            Some(Ok(bytes)) => {
                buffer.put_slice(&bytes);
                Poll::Ready(Ok(()))
            }
            Some(Err(error)) => Poll::Ready(Err(error.into())),
            None => Poll::Pending,
        }
    }
}

impl AsyncWrite for FastStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.network.lock().write(self.id, self.side, bytes, context.waker()) {
            Some(written) => Poll::Ready(written.map_err(io::Error::from)),
            None => Poll::Pending,
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.network.lock().finish(self.id, self.side);
        Poll::Ready(Ok(()))
    }
}
