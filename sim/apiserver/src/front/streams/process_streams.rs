//! Streams of a process: its input, its outputs and its result, over a WebSocket or over SPDY.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::connection::{Gone, Io};
use super::websocket::{Channels, Incoming};
use super::wire::SpdyWire;
use crate::http::upgrade::StreamProtocol;
use crate::process::program::StandardStreams;
use crate::process::run::Output;
use crate::spdy::connection::Event;

/// Longest time until the client has opened its streams.
const OPEN_MAX: Duration = Duration::from_secs(30);

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const RESULT: u8 = 3;

/// Input of a process.
pub(super) enum Input {
    Bytes(Bytes),
    /// The client sends no more input.
    Ended,
    /// No input, such as the new size of the terminal.
    Other,
}

/// Streams of a process.
pub(super) enum ProcessStreams {
    WebSocket(Channels),
    Spdy(SpdyStreams),
}

impl ProcessStreams {
    /// Accepts a connection, whose handshake is done, and waits until its streams are open.
    pub(super) async fn open(protocol: StreamProtocol, streams: StandardStreams, io: Io) -> Result<Self, Gone> {
        if !matches!(protocol, StreamProtocol::WebSocket { .. }) {
            let opening = SpdyStreams::open(protocol, streams, io);
            return tokio::time::timeout(OPEN_MAX, opening).await.unwrap_or(Err(Gone)).map(Self::Spdy);
        }
        let mut channels = Channels::accept(protocol, io).await;
        // An empty message shows the client that the streams are open.
        let first = if streams.stdout {
            STDOUT
        } else if streams.stderr {
            STDERR
        } else {
            RESULT
        };
        channels.send(first, &[]).await?;
        Ok(Self::WebSocket(channels))
    }

    /// Returns the next input. It may be dropped while it waits.
    pub(super) async fn next(&mut self) -> Result<Input, Gone> {
        match self {
            Self::WebSocket(channels) => Ok(match channels.next().await? {
                Incoming::Data { channel: STDIN, bytes } => Input::Bytes(bytes),
                Incoming::Ended { channel: STDIN } => Input::Ended,
                Incoming::Data { .. } | Incoming::Ended { .. } => Input::Other,
            }),
            Self::Spdy(streams) => streams.next().await,
        }
    }

    /// Writes output.
    pub(super) async fn write(&mut self, output: Output, bytes: &[u8]) -> Result<(), Gone> {
        match self {
            Self::WebSocket(channels) => {
                let channel = match output {
                    Output::Stdout => STDOUT,
                    Output::Stderr => STDERR,
                };
                channels.send(channel, bytes).await
            }
            Self::Spdy(streams) => {
                let stream = match output {
                    Output::Stdout => streams.stdout,
                    Output::Stderr => streams.stderr,
                };
                stream.into_iter().for_each(|stream| streams.wire.connection.write(stream, bytes));
                streams.wire.flush().await
            }
        }
    }

    /// Sends what the protocol itself has to say.
    pub(super) async fn flush(&mut self) -> Result<(), Gone> {
        match self {
            Self::WebSocket(_) => Ok(()),
            Self::Spdy(streams) => streams.wire.flush().await,
        }
    }

    /// Writes the result, and ends the connection.
    pub(super) async fn finish(mut self, protocol: StreamProtocol, status: &Value) -> Result<(), Gone> {
        let text = if protocol.has_status_objects() {
            status.to_string()
        } else {
            // Older protocols report errors only, and as text.
            status.get("message").and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        match &mut self {
            Self::WebSocket(channels) => {
                if !text.is_empty() {
                    channels.send(RESULT, text.as_bytes()).await?;
                }
                channels.close().await;
            }
            Self::Spdy(streams) => streams.finish(&text).await?,
        }
        Ok(())
    }
}

/// Streams of a process over SPDY.
pub(super) struct SpdyStreams {
    wire: SpdyWire,
    stdin: Option<u32>,
    stdout: Option<u32>,
    stderr: Option<u32>,
    result: Option<u32>,
}

impl SpdyStreams {
    /// Waits until the client has opened every stream that it asked for.
    async fn open(protocol: StreamProtocol, streams: StandardStreams, io: Io) -> Result<Self, Gone> {
        let wire = SpdyWire::accept(protocol, io).await;
        let mut opened = Self { wire, stdin: None, stdout: None, stderr: None, result: None };
        let StandardStreams { stdin, stdout, stderr, tty } = streams;
        let resizes = tty && protocol.has_resize_stream();
        let expected = 1 + [stdin, stdout, stderr, resizes].into_iter().filter(|is_expected| *is_expected).count();
        let mut count = 0;
        while count < expected {
            match opened.wire.next().await? {
                Some(Event::Opened { stream, headers }) => {
                    let kind = headers.iter().find(|(name, _)| name == "streamtype").map(|(_, value)| value.as_str());
                    match kind {
                        Some("stdin") => opened.stdin = Some(stream),
                        Some("stdout") => opened.stdout = Some(stream),
                        Some("stderr") => opened.stderr = Some(stream),
                        Some("error") => opened.result = Some(stream),
                        // The size of a terminal has no effect, and other streams do not count.
                        Some("resize") => {}
                        _ => continue,
                    }
                    opened.wire.connection.accept(stream);
                    count += 1;
                }
                Some(Event::Data { .. } | Event::Ended { .. } | Event::Reset { .. }) | None => {}
            }
            opened.wire.flush().await?;
        }
        Ok(opened)
    }

    async fn next(&mut self) -> Result<Input, Gone> {
        Ok(match self.wire.next().await? {
            Some(Event::Data { stream, bytes }) if Some(stream) == self.stdin => Input::Bytes(bytes.into()),
            Some(Event::Ended { stream } | Event::Reset { stream }) if Some(stream) == self.stdin => Input::Ended,
            Some(Event::Opened { stream, .. }) => {
                self.wire.connection.refuse(stream);
                Input::Other
            }
            Some(Event::Data { .. } | Event::Ended { .. } | Event::Reset { .. }) | None => Input::Other,
        })
    }

    async fn finish(&mut self, text: &str) -> Result<(), Gone> {
        for output in [self.stdout, self.stderr].into_iter().flatten() {
            self.wire.connection.end(output);
        }
        if let Some(result) = self.result {
            self.wire.connection.write(result, text.as_bytes());
            self.wire.connection.end(result);
        }
        self.wire.flush().await?;
        self.wire.close().await;
        Ok(())
    }
}
