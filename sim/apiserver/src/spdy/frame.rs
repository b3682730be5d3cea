//! Frames of SPDY/3.1: reading them from bytes as they arrive, and writing them.

/// Largest control frame in bytes, without its first eight.
const CONTROL_BYTES_MAX: usize = 64 * 1024;
/// Bytes at the beginning of each frame: its kind, its flags and its length.
const HEAD_BYTES: usize = 8;
const VERSION: u16 = 3;
/// Flag of the last frame of a stream in one direction.
const FIN: u8 = 1;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GO_AWAY: u16 = 7;
const HEADERS: u16 = 8;

/// Status of a reset stream: the client violated the protocol.
pub(super) const PROTOCOL_ERROR: u32 = 1;
/// Status of a reset stream: it was refused before anything was done for it.
pub(super) const REFUSED: u32 = 3;
/// Status of a reset stream: its creator, or the server, has no more use for it.
pub(super) const CANCEL: u32 = 5;

/// Error of a client that ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SpdyError {
    /// The version of a control frame is not 3.
    #[error("the frame has another version than SPDY/3")]
    Version,
    /// A control frame is too long.
    #[error("the control frame is larger than {CONTROL_BYTES_MAX} bytes")]
    TooLong,
    /// A control frame is shorter than its fields.
    #[error("the control frame is too short")]
    TooShort,
    /// The compressed headers cannot be read.
    #[error("the headers cannot be read")]
    Headers,
}

/// Part of the input: a control frame, or the next bytes of a data frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A new stream, with its compressed headers.
    SynStream { stream: u32, fin: bool, headers: Vec<u8> },
    /// Further headers of a stream, compressed.
    Headers { headers: Vec<u8> },
    /// A stream that ends in both directions.
    Reset { stream: u32 },
    /// A ping, which is sent back.
    Ping { id: u32 },
    /// The client opens no more streams.
    GoAway,
    /// Data of a stream; `fin` is set for its last part.
    Data { stream: u32, bytes: Vec<u8>, fin: bool },
    /// A control frame without an effect here.
    Ignored,
}

/// Rest of a data frame that has begun.
#[derive(Clone, Copy, Debug)]
struct Data {
    stream: u32,
    fin: bool,
    left: usize,
}

/// Reads frames from bytes. It holds at most one control frame.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    pending: Vec<u8>,
    data: Option<Data>,
}

impl FrameReader {
    /// Returns the next frame, and removes its bytes from the input; none if more bytes are needed.
    pub(super) fn next(&mut self, input: &mut &[u8]) -> Result<Option<Frame>, SpdyError> {
        if let Some(data) = self.data {
            return Ok(self.next_data(data, input));
        }
        if !self.fill(HEAD_BYTES, input) {
            return Ok(None);
        }
        let [a, b, c, d, flags, high, middle, low] = self.head();
        let length = usize::try_from(u32::from_be_bytes([0, high, middle, low])).unwrap_or(usize::MAX);
        if a & 0x80 == 0 {
            self.pending.clear();
            let data = Data { stream: u32::from_be_bytes([a, b, c, d]), fin: flags & FIN != 0, left: length };
            self.data = Some(data);
            return Ok(self.next_data(data, input));
        }
        if u16::from_be_bytes([a & 0x7f, b]) != VERSION {
            return Err(SpdyError::Version);
        }
        if length > CONTROL_BYTES_MAX {
            return Err(SpdyError::TooLong);
        }
        if !self.fill(HEAD_BYTES + length, input) {
            return Ok(None);
        }
        let frame = parse_control(u16::from_be_bytes([c, d]), flags, &self.pending[HEAD_BYTES..]);
        self.pending.clear();
        frame.map(Some)
    }

    fn head(&self) -> [u8; HEAD_BYTES] {
        self.pending.first_chunk().copied().unwrap_or_default()
    }

    /// Moves bytes from the input until this many are pending. Returns true if they are.
    fn fill(&mut self, wanted: usize, input: &mut &[u8]) -> bool {
        let count = wanted.saturating_sub(self.pending.len()).min(input.len());
        let (taken, rest) = input.split_at(count);
        self.pending.extend_from_slice(taken);
        *input = rest;
        self.pending.len() >= wanted
    }

    fn next_data(&mut self, data: Data, input: &mut &[u8]) -> Option<Frame> {
        if input.is_empty() && data.left > 0 {
            return None;
        }
        let (taken, rest) = input.split_at(data.left.min(input.len()));
        *input = rest;
        let left = data.left - taken.len();
        self.data = (left > 0).then_some(Data { left, ..data });
        Some(Frame::Data { stream: data.stream, bytes: taken.to_vec(), fin: data.fin && left == 0 })
    }
}

fn number_at(bytes: &[u8], at: usize) -> Result<u32, SpdyError> {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or(SpdyError::TooShort)?;
    Ok(u32::from_be_bytes(*word))
}

fn parse_control(kind: u16, flags: u8, payload: &[u8]) -> Result<Frame, SpdyError> {
    let rest = |at: usize| payload.get(at..).map(<[u8]>::to_vec).ok_or(SpdyError::TooShort);
    let stream = || Ok(number_at(payload, 0)? & 0x7fff_ffff);
    Ok(match kind {
        SYN_STREAM => Frame::SynStream { stream: stream()?, fin: flags & FIN != 0, headers: rest(10)? },
        // The server opens no streams, so that a reply is as good as further headers: both continue the compressed stream.
        SYN_REPLY | HEADERS => Frame::Headers { headers: rest(4)? },
        RST_STREAM => Frame::Reset { stream: stream()? },
        PING => Frame::Ping { id: number_at(payload, 0)? },
        GO_AWAY => Frame::GoAway,
        _ => Frame::Ignored,
    })
}

fn write_control(output: &mut Vec<u8>, kind: u16, flags: u8, fields: &[u32], rest: &[u8]) {
    let length = u32::try_from(fields.len() * 4 + rest.len()).unwrap_or(u32::MAX);
    output.extend((0x8000 | VERSION).to_be_bytes());
    output.extend(kind.to_be_bytes());
    output.extend((u32::from(flags) << 24 | length).to_be_bytes());
    fields.iter().for_each(|field| output.extend(field.to_be_bytes()));
    output.extend(rest);
}

/// Writes the reply to a new stream; `fin` ends the direction from the server.
pub(super) fn write_reply(output: &mut Vec<u8>, stream: u32, fin: bool, headers: &[u8]) {
    write_control(output, SYN_REPLY, u8::from(fin), &[stream], headers);
}

/// Writes the end of a stream in both directions.
pub(super) fn write_reset(output: &mut Vec<u8>, stream: u32, status: u32) {
    write_control(output, RST_STREAM, 0, &[stream, status], &[]);
}

/// Writes a ping.
pub(super) fn write_ping(output: &mut Vec<u8>, id: u32) {
    write_control(output, PING, 0, &[id], &[]);
}

/// Writes the announcement that no more streams are accepted.
pub(super) fn write_go_away(output: &mut Vec<u8>, last: u32) {
    write_control(output, GO_AWAY, 0, &[last, 0], &[]);
}

/// Writes data of a stream, whose length must be below 2^24.
pub(super) fn write_data(output: &mut Vec<u8>, stream: u32, bytes: &[u8], fin: bool) {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    output.extend((stream & 0x7fff_ffff).to_be_bytes());
    output.extend((u32::from(u8::from(fin)) << 24 | length & 0x00ff_ffff).to_be_bytes());
    output.extend(bytes);
}
