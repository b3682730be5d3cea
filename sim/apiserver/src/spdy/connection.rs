//! The server's side of a SPDY connection: the streams that the client opens.

use std::collections::BTreeMap;

use super::frame::{self, CANCEL, Frame, FrameReader, PROTOCOL_ERROR, REFUSED, SpdyError};
use super::headers::{HeaderReader, HeaderWriter, Headers};

/// Largest number of open streams of a connection.
const STREAMS_MAX: usize = 1_000;
/// Largest data frame in bytes that the server writes.
const DATA_BYTES_MAX: usize = 32 * 1024;

/// Event of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The client opened a stream, which must be accepted or refused.
    Opened { stream: u32, headers: Headers },
    /// Data of a stream.
    Data { stream: u32, bytes: Vec<u8> },
    /// The client sends nothing more on a stream.
    Ended { stream: u32 },
    /// The stream exists no more.
    Reset { stream: u32 },
}

/// Directions of a stream that are open.
#[derive(Clone, Copy, Debug)]
struct Open {
    from_client: bool,
    to_client: bool,
}

/// The server's side of a connection.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    frames: FrameReader,
    header_reader: HeaderReader,
    header_writer: HeaderWriter,
    streams: BTreeMap<u32, Open>,
    /// Greatest id of a stream that the client opened.
    last: u32,
    /// Bytes for the client.
    output: Vec<u8>,
}

impl Connection {
    /// Handles bytes of the client. After an error the connection must end.
    pub(crate) fn receive(&mut self, mut input: &[u8]) -> Result<Vec<Event>, SpdyError> {
        let mut events = Vec::new();
        while let Some(frame) = self.frames.next(&mut input)? {
            self.handle(frame, &mut events)?;
        }
        Ok(events)
    }

    fn handle(&mut self, frame: Frame, events: &mut Vec<Event>) -> Result<(), SpdyError> {
        match frame {
            Frame::SynStream { stream, fin, headers } => {
                let headers = self.header_reader.read(&headers)?;
                self.open(stream, fin, headers, events);
            }
            // They are read only because they are part of the compressed stream.
            Frame::Headers { headers } => drop(self.header_reader.read(&headers)?),
            Frame::Reset { stream } => {
                if self.streams.remove(&stream).is_some() {
                    events.push(Event::Reset { stream });
                }
            }
            Frame::Ping { id } => frame::write_ping(&mut self.output, id),
            Frame::Data { stream, bytes, fin } => self.receive_data(stream, bytes, fin, events),
            // The client closes the connection when its streams have ended.
            Frame::GoAway | Frame::Ignored => {}
        }
        Ok(())
    }

    fn open(&mut self, stream: u32, fin: bool, headers: Headers, events: &mut Vec<Event>) {
        // A client's streams have odd and ascending ids.
        if stream.is_multiple_of(2) || stream <= self.last {
            return frame::write_reset(&mut self.output, stream, PROTOCOL_ERROR);
        }
        self.last = stream;
        if self.streams.len() >= STREAMS_MAX {
            return frame::write_reset(&mut self.output, stream, REFUSED);
        }
        self.streams.insert(stream, Open { from_client: !fin, to_client: true });
        events.push(Event::Opened { stream, headers });
        if fin {
            events.push(Event::Ended { stream });
        }
    }

    fn receive_data(&mut self, stream: u32, bytes: Vec<u8>, fin: bool, events: &mut Vec<Event>) {
        let Some(open) = self.streams.get_mut(&stream).filter(|open| open.from_client) else { return };
        open.from_client = !fin;
        if !bytes.is_empty() {
            events.push(Event::Data { stream, bytes });
        }
        if fin {
            events.push(Event::Ended { stream });
            self.forget_if_closed(stream);
        }
    }

    fn forget_if_closed(&mut self, stream: u32) {
        if self.streams.get(&stream).is_some_and(|open| !open.from_client && !open.to_client) {
            self.streams.remove(&stream);
        }
    }

    /// Accepts a new stream.
    pub(crate) fn accept(&mut self, stream: u32) {
        let headers = self.header_writer.write_empty();
        frame::write_reply(&mut self.output, stream, false, &headers);
    }

    /// Refuses a new stream, as the real server does: it is reset, and then accepted as one that has ended.
    pub(crate) fn refuse(&mut self, stream: u32) {
        self.reset(stream);
        let headers = self.header_writer.write_empty();
        frame::write_reply(&mut self.output, stream, true, &headers);
    }

    /// Writes data to a stream. Data for a stream that has ended is dropped.
    pub(crate) fn write(&mut self, stream: u32, bytes: &[u8]) {
        if self.streams.get(&stream).is_some_and(|open| open.to_client) {
            for chunk in bytes.chunks(DATA_BYTES_MAX) {
                frame::write_data(&mut self.output, stream, chunk, false);
            }
        }
    }

    /// Ends the direction to the client.
    pub(crate) fn end(&mut self, stream: u32) {
        let Some(open) = self.streams.get_mut(&stream).filter(|open| open.to_client) else { return };
        open.to_client = false;
        frame::write_data(&mut self.output, stream, &[], true);
        self.forget_if_closed(stream);
    }

    /// Ends a stream in both directions.
    pub(crate) fn reset(&mut self, stream: u32) {
        if self.streams.remove(&stream).is_some() {
            frame::write_reset(&mut self.output, stream, CANCEL);
        }
    }

    /// Ends every stream, and tells the client so.
    pub(crate) fn close(&mut self) {
        for stream in std::mem::take(&mut self.streams).into_keys() {
            frame::write_reset(&mut self.output, stream, CANCEL);
        }
        frame::write_go_away(&mut self.output, self.last);
    }

    /// True if there are bytes for the client.
    pub(crate) fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Takes the bytes for the client.
    pub(crate) fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }
}
