//! Header of the PROXY protocol, version 1 or 2, with which a proxy names its client at the start of a connection.
//!
//! Only the address of the client is used: ports, and the extensions of version 2, are skipped.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};

/// First bytes of a header of version 2.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Limit on the line of version 1, which the protocol sets.
const LINE_BYTES_MAX: usize = 107;
/// Limit on addresses and extensions of version 2.
const REST_BYTES_MAX: usize = 4 * 1024;

/// The connection does not begin with a header of the PROXY protocol.
#[derive(Debug, Error)]
pub(super) enum ProxyHeaderError {
    #[error("the connection ended before its PROXY protocol header: {0}")]
    Read(#[from] io::Error),
    #[error("it does not begin with a PROXY protocol header")]
    Missing,
    #[error("its PROXY protocol header is invalid")]
    Invalid,
}

/// Reads the header and nothing after it. Returns the address of the client, or `None` if the proxy speaks for itself, for example
/// to check whether this server is healthy.
pub(super) async fn read_client_address(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<Option<IpAddr>, ProxyHeaderError> {
    // The shortest line of version 1 is longer than the signature.
    let mut start = [0; SIGNATURE.len()];
    stream.read_exact(&mut start).await?;
    if start == SIGNATURE {
        return read_version_2(stream).await;
    }
    if !start.starts_with(b"PROXY ") {
        return Err(ProxyHeaderError::Missing);
    }
    let mut line = start.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() == LINE_BYTES_MAX {
            return Err(ProxyHeaderError::Invalid);
        }
        line.push(stream.read_u8().await?);
    }
    parse_version_1(&line)
}

fn parse_version_1(line: &[u8]) -> Result<Option<IpAddr>, ProxyHeaderError> {
    let line = str::from_utf8(line).map_err(|_| ProxyHeaderError::Invalid)?;
    let mut words = line.trim_end_matches("\r\n").split(' ').skip(1);
    let address = match (words.next(), words.next()) {
        (Some("UNKNOWN"), _) => return Ok(None),
        (Some("TCP4"), Some(source)) => source.parse().map(IpAddr::V4),
        (Some("TCP6"), Some(source)) => source.parse().map(IpAddr::V6),
        _ => return Err(ProxyHeaderError::Invalid),
    };
    address.map(Some).map_err(|_| ProxyHeaderError::Invalid)
}

async fn read_version_2(stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<IpAddr>, ProxyHeaderError> {
    let (command, family) = (stream.read_u8().await?, stream.read_u8().await?);
    let length = usize::from(stream.read_u16().await?);
    if length > REST_BYTES_MAX {
        return Err(ProxyHeaderError::Invalid);
    }
    let mut rest = vec![0; length];
    stream.read_exact(&mut rest).await?;
    let address = match (command, family >> 4) {
        (0x20, _) | (0x21, 0 | 3) => return Ok(None),
        (0x21, 1) => rest.first_chunk::<4>().map(|bytes| IpAddr::from(Ipv4Addr::from(*bytes))),
        (0x21, 2) => rest.first_chunk::<16>().map(|bytes| IpAddr::from(Ipv6Addr::from(*bytes))),
        _ => None,
    };
    address.map(Some).ok_or(ProxyHeaderError::Invalid)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const V4: [u8; 12] = [192, 0, 2, 7, 10, 0, 0, 1, 0x1f, 0x90, 0, 80];

    fn version_2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[command, family], &length, rest].concat()
    }

    /// Reads a header; returns the result as text, and the bytes that are left.
    fn read(header: &[u8]) -> (String, Vec<u8>) {
        let bytes = [header, b"GET /"].concat();
        let mut stream = bytes.as_slice();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let text = match runtime.block_on(read_client_address(&mut stream)) {
            Ok(address) => address.map_or("none".to_owned(), |address| address.to_string()),
            Err(error) => error.to_string(),
        };
        (text, stream.to_vec())
    }

    #[test]
    fn a_header_of_either_version_names_the_client_and_nothing_else_is_read() {
        let mut v6 = [0; 36];
        v6[..16].copy_from_slice(&"2001:db8::7".parse::<Ipv6Addr>().unwrap().octets());
        for (header, expected) in [
            (b"PROXY TCP4 192.0.2.7 10.0.0.1 8080 80\r\n".to_vec(), "192.0.2.7"),
            (b"PROXY TCP6 2001:db8::7 ::1 8080 80\r\n".to_vec(), "2001:db8::7"),
            (b"PROXY UNKNOWN\r\n".to_vec(), "none"),
            (b"PROXY UNKNOWN ff::1 ff::2 1 2\r\n".to_vec(), "none"),
            (version_2(0x21, 0x11, &V4), "192.0.2.7"),
            (version_2(0x21, 0x11, &[&V4[..], &[3, 0, 1, 9]].concat()), "192.0.2.7"),
            (version_2(0x21, 0x21, &v6), "2001:db8::7"),
            (version_2(0x20, 0, &[]), "none"),
        ] {
            assert_eq!(read(&header), (expected.to_owned(), b"GET /".to_vec()), "{header:?}");
        }
    }

    #[test]
    fn what_is_no_header_is_an_error() {
        let (missing, invalid) = (ProxyHeaderError::Missing.to_string(), ProxyHeaderError::Invalid.to_string());
        for (header, expected) in [
            (b"GET /healthz HTTP/1.1\r\n".to_vec(), &missing),
            (b"PROXY TCP4 shop 10.0.0.1 8080 80\r\n".to_vec(), &invalid),
            (b"PROXY TCP4 2001:db8::7 ::1 8080 80\r\n".to_vec(), &invalid),
            (b"PROXY UDP4 192.0.2.7 10.0.0.1 8080 80\r\n".to_vec(), &invalid),
            ([&b"PROXY "[..], &[b'a'; 200]].concat(), &invalid),
            (version_2(0x21, 0x11, &V4[..3]), &invalid),
            (version_2(0x31, 0x11, &V4), &invalid),
            (version_2(0x21, 0x11, &[0; REST_BYTES_MAX + 1]), &invalid),
        ] {
            assert_eq!(&read(&header).0, expected, "{header:?}");
        }
        assert!(read(b"PROXY ").0.starts_with("the connection ended"));
    }

    proptest! {
        #[test]
        fn no_input_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), is_version_2: bool) {
            let header = if is_version_2 { [&SIGNATURE[..], &bytes].concat() } else { [b"PROXY ", &bytes[..]].concat() };
            read(&header);
        }
    }
}
