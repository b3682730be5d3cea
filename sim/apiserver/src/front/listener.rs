//! Listeners: where the connections of a server come from.

use std::future::Future;
use std::io::ErrorKind;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// Pause after an error that the next attempt would have too, such as too many open files.
const ERROR_PAUSE: Duration = Duration::from_secs(1);

/// Accepts connections, over any network.
pub trait Listener: Send {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection. A listener tries again after an error.
    fn accept(&mut self) -> impl Future<Output = Self::Stream> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&mut self) -> TcpStream {
        loop {
            match TcpListener::accept(self).await {
                Ok((stream, _peer)) => {
                    // Like the real server: without TCP_NODELAY, small writes such as watch events would wait for
                    // acknowledgements. Failure only costs speed; a closed connection is noticed at the first read.
                    let _ = stream.set_nodelay(true);
                    return stream;
                }
                // The client closed its connection before it was accepted.
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => {}
                Err(_) => tokio::time::sleep(ERROR_PAUSE).await,
            }
        }
    }
}
