//! WebSockets whose messages begin with the number of a channel.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

use super::connection::{Gone, Io, LINGER_MAX, in_time};
use crate::http::upgrade::StreamProtocol;

/// Largest message in bytes, as in the real server.
const MESSAGE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Bytes that a connection buffers for reading.
const READ_BYTES: usize = 16 * 1024;
/// Number of the message that ends a channel.
const CLOSE: u8 = 255;
/// Character of channel 0 where data is encoded in Base64.
const ZERO: u8 = b'0';

/// Accepts a WebSocket, whose handshake is done.
pub(super) async fn accept(io: Io) -> WebSocketStream<Io> {
    let config = WebSocketConfig::default().read_buffer_size(READ_BYTES).write_buffer_size(0);
    let config = config.max_message_size(Some(MESSAGE_BYTES_MAX)).max_frame_size(Some(MESSAGE_BYTES_MAX));
    WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await
}

/// Returns the data of the next message. It may be dropped while it waits.
pub(super) async fn read_message(socket: &mut WebSocketStream<Io>) -> Result<Bytes, Gone> {
    loop {
        match socket.next().await {
            Some(Ok(Message::Binary(bytes))) => return Ok(bytes),
            Some(Ok(Message::Text(text))) => return Ok(text.into()),
            // The library answers pings.
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(Gone),
        }
    }
}

/// Ends a WebSocket, and waits until the client has read everything.
pub(super) async fn close(socket: &mut WebSocketStream<Io>) {
    let normal = CloseFrame { code: CloseCode::Normal, reason: "".into() };
    let closing = async {
        let _broken = socket.close(Some(normal)).await;
        while let Some(Ok(_unread)) = socket.next().await {}
    };
    let _too_long = tokio::time::timeout(LINGER_MAX, closing).await;
}

/// Message of a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    Data {
        channel: u8,
        bytes: Bytes,
    },
    /// The client sends nothing more on a channel.
    Ended {
        channel: u8,
    },
}

/// Channels of a WebSocket.
pub(super) struct Channels {
    socket: WebSocketStream<Io>,
    is_base64: bool,
    has_close_messages: bool,
}

impl Channels {
    /// Accepts a WebSocket, whose handshake is done.
    pub(super) async fn accept(protocol: StreamProtocol, io: Io) -> Self {
        let socket = accept(io).await;
        Self { socket, is_base64: protocol.is_base64(), has_close_messages: protocol.has_close_messages() }
    }

    /// Returns the next message. It may be dropped while it waits.
    pub(super) async fn next(&mut self) -> Result<Incoming, Gone> {
        loop {
            let message = read_message(&mut self.socket).await?;
            if let Some(incoming) = self.parse(&message)? {
                return Ok(incoming);
            }
        }
    }

    /// Parses a message. None is ignored: it is empty, or its data is not Base64.
    fn parse(&self, message: &Bytes) -> Result<Option<Incoming>, Gone> {
        match message.first() {
            None => Ok(None),
            Some(&CLOSE) if self.has_close_messages => match message[..] {
                [_, channel] => Ok(Some(Incoming::Ended { channel })),
                _ => Err(Gone),
            },
            Some(channel) if self.is_base64 => {
                let channel = channel.wrapping_sub(ZERO);
                Ok(STANDARD.decode(&message[1..]).ok().map(|bytes| Incoming::Data { channel, bytes: bytes.into() }))
            }
            Some(&channel) => Ok(Some(Incoming::Data { channel, bytes: message.slice(1..) })),
        }
    }

    /// Sends data on a channel.
    pub(super) async fn send(&mut self, channel: u8, bytes: &[u8]) -> Result<(), Gone> {
        let message = if self.is_base64 {
            let text = format!("{}{}", char::from(channel.saturating_add(ZERO)), STANDARD.encode(bytes));
            Message::Text(text.into())
        } else {
            let mut message = Vec::with_capacity(bytes.len() + 1);
            message.push(channel);
            message.extend_from_slice(bytes);
            Message::Binary(message.into())
        };
        in_time(async { self.socket.send(message).await.map_err(|_| Gone) }).await
    }

    /// Ends the connection.
    pub(super) async fn close(&mut self) {
        close(&mut self.socket).await;
    }
}
