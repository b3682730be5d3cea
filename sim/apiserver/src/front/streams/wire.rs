//! A SPDY connection on the wire, or in the messages of a WebSocket.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use futures_util::SinkExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::connection::{Gone, Io, LINGER_MAX, in_time};
use super::websocket;
use crate::http::upgrade::StreamProtocol;
use crate::spdy::connection::{Connection, Event};

/// Bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;

enum Wire {
    Plain(Io),
    WebSocket(Box<WebSocketStream<Io>>),
}

impl Wire {
    /// Returns the next bytes. It may be dropped while it waits.
    async fn read(&mut self) -> Result<Bytes, Gone> {
        match self {
            Self::Plain(io) => {
                let mut bytes = BytesMut::with_capacity(READ_BYTES);
                match io.read_buf(&mut bytes).await {
                    Ok(0) | Err(_) => Err(Gone),
                    Ok(_) => Ok(bytes.freeze()),
                }
            }
            Self::WebSocket(socket) => websocket::read_message(socket).await,
        }
    }

    async fn write(&mut self, bytes: Vec<u8>) -> Result<(), Gone> {
        match self {
            Self::Plain(io) => {
                io.write_all(&bytes).await.map_err(|_| Gone)?;
                io.flush().await.map_err(|_| Gone)
            }
            Self::WebSocket(socket) => socket.send(Message::Binary(bytes.into())).await.map_err(|_| Gone),
        }
    }

    /// Ends the connection, and waits until the client has read everything.
    async fn close(&mut self) {
        let io = match self {
            Self::Plain(io) => io,
            Self::WebSocket(socket) => return websocket::close(socket).await,
        };
        let closing = async {
            let _broken = io.shutdown().await;
            let mut unread = BytesMut::with_capacity(READ_BYTES);
            while io.read_buf(&mut unread).await.is_ok_and(|count| count > 0) {
                unread.clear();
            }
        };
        let _too_long = tokio::time::timeout(LINGER_MAX, closing).await;
    }
}

/// A SPDY connection with a client.
pub(super) struct SpdyWire {
    wire: Wire,
    /// Streams of the connection. [`Self::flush`] sends the bytes written to them.
    pub(super) connection: Connection,
    events: VecDeque<Event>,
}

impl SpdyWire {
    /// Accepts a connection, whose handshake is done.
    pub(super) async fn accept(protocol: StreamProtocol, io: Io) -> Self {
        let wire = match protocol {
            StreamProtocol::TunnelledSpdy { .. } => Wire::WebSocket(Box::new(websocket::accept(io).await)),
            StreamProtocol::Spdy { .. } | StreamProtocol::WebSocket { .. } => Wire::Plain(io),
        };
        Self { wire, connection: Connection::default(), events: VecDeque::new() }
    }

    /// Returns the next event; none if there is only output to be flushed. It may be dropped while it waits.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, Gone> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            if self.connection.has_output() {
                return Ok(None);
            }
            let bytes = self.wire.read().await?;
            self.events.extend(self.connection.receive(&bytes).map_err(|_| Gone)?);
        }
    }

    /// Sends what was written.
    pub(super) async fn flush(&mut self) -> Result<(), Gone> {
        let output = self.connection.take_output();
        if output.is_empty() { Ok(()) } else { in_time(self.wire.write(output)).await }
    }

    /// Ends the connection.
    pub(super) async fn close(&mut self) {
        self.connection.close();
        if self.flush().await.is_ok() {
            self.wire.close().await;
        }
    }
}
