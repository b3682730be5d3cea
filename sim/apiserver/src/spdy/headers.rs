//! Headers of streams, compressed with zlib and a preset dictionary.
//!
//! All blocks of a direction are one compressed stream. The library that inflates it has no preset dictionaries, so that
//! the dictionary is handed to it as an uncompressed block before the first one. The headers that the server writes are not compressed.

use flate2::{Decompress, FlushDecompress, Status};

use super::dictionary::{CHECKSUM, dictionary};
use super::frame::SpdyError;

/// Largest block of headers in bytes, after decompression.
const HEADERS_BYTES_MAX: usize = 64 * 1024;
/// Bit of the second byte of a zlib stream that announces a preset dictionary.
const HAS_DICTIONARY: u8 = 0x20;
/// Beginning of a zlib stream with a preset dictionary: the bytes that Go's compressor writes.
const BEGIN: [u8; 2] = [0x78, 0xf9];
/// Empty uncompressed block, after which a decompressor returns all that it has.
const FLUSH: [u8; 5] = [0, 0, 0, 0xff, 0xff];

/// Names, in lower case, and values.
pub(crate) type Headers = Vec<(String, String)>;

/// Inflates the headers of a client.
#[derive(Default)]
pub(super) struct HeaderReader {
    inflater: Option<Decompress>,
}

impl std::fmt::Debug for HeaderReader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("HeaderReader")
    }
}

impl HeaderReader {
    /// Reads the next block of headers.
    pub(super) fn read(&mut self, mut compressed: &[u8]) -> Result<Headers, SpdyError> {
        let inflater = match &mut self.inflater {
            Some(inflater) => inflater,
            empty @ None => {
                let [_, flags, rest @ ..] = compressed else { return Err(SpdyError::Headers) };
                compressed = rest;
                let mut inflater = Decompress::new(false);
                if flags & HAS_DICTIONARY != 0 {
                    compressed = compressed.strip_prefix(&CHECKSUM.to_be_bytes()).ok_or(SpdyError::Headers)?;
                    inflate(&mut inflater, &uncompressed_block(&dictionary()))?;
                }
                empty.insert(inflater)
            }
        };
        parse(&inflate(inflater, compressed)?)
    }
}

/// Writes the headers of the server, uncompressed.
#[derive(Debug, Default)]
pub(super) struct HeaderWriter {
    has_begun: bool,
}

impl HeaderWriter {
    /// Returns a block without headers, which is all that a reply needs.
    pub(super) fn write_empty(&mut self) -> Vec<u8> {
        let mut block = Vec::new();
        if !self.has_begun {
            self.has_begun = true;
            block.extend(BEGIN);
            block.extend(CHECKSUM.to_be_bytes());
        }
        block.extend(uncompressed_block(&0_u32.to_be_bytes()));
        block.extend(FLUSH);
        block
    }
}

/// Returns bytes as an uncompressed block, which must have less than 2^16 of them.
pub(super) fn uncompressed_block(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    let mut block = vec![0];
    block.extend(length.to_le_bytes());
    block.extend((!length).to_le_bytes());
    block.extend(bytes);
    block
}

fn inflate(inflater: &mut Decompress, mut input: &[u8]) -> Result<Vec<u8>, SpdyError> {
    let mut output = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let (read, written) = (inflater.total_in(), inflater.total_out());
        let status = inflater.decompress(input, &mut chunk, FlushDecompress::Sync).map_err(|_| SpdyError::Headers)?;
        let count = |after: u64, before: u64| usize::try_from(after - before).unwrap_or(usize::MAX);
        let (read, written) = (count(inflater.total_in(), read), count(inflater.total_out(), written));
        input = input.get(read..).unwrap_or_default();
        output.extend_from_slice(chunk.get(..written).unwrap_or_default());
        if output.len() > HEADERS_BYTES_MAX {
            return Err(SpdyError::Headers);
        }
        match status {
            // The stream goes on as long as the connection.
            Status::StreamEnd => return Err(SpdyError::Headers),
            Status::Ok | Status::BufError if read == 0 && written < chunk.len() => {
                return if input.is_empty() { Ok(output) } else { Err(SpdyError::Headers) };
            }
            Status::Ok | Status::BufError => {}
        }
    }
}

/// Parses a block: the number of headers, and for each the length and text of its name and its value.
fn parse(mut block: &[u8]) -> Result<Headers, SpdyError> {
    let count = take_number(&mut block)?;
    let mut headers = Headers::new();
    for _ in 0..count {
        // A block that announces more than it has ends here, so that the bytes of the block bound the headers.
        let (name, value) = (take_text(&mut block)?, take_text(&mut block)?);
        headers.push((name.to_lowercase(), value));
    }
    Ok(headers)
}

fn take_number(block: &mut &[u8]) -> Result<usize, SpdyError> {
    let (number, rest) = block.split_first_chunk::<4>().ok_or(SpdyError::Headers)?;
    *block = rest;
    usize::try_from(u32::from_be_bytes(*number)).map_err(|_| SpdyError::Headers)
}

fn take_text(block: &mut &[u8]) -> Result<String, SpdyError> {
    let length = take_number(block)?;
    let (text, rest) = block.split_at_checked(length).ok_or(SpdyError::Headers)?;
    *block = rest;
    Ok(String::from_utf8_lossy(text).into_owned())
}
