//! Tests against bytes that a Kubernetes client wrote, and against arbitrary bytes.

use proptest::prelude::*;

use super::connection::{Connection, Event};
use super::frame::SpdyError;
use super::headers::uncompressed_block;

/// Two streams, the second with three headers: bytes of the SPDY library of Kubernetes.
const ERROR_STREAM: &str =
    "80030001000000290000000100000000000078f9e3c6a7c26260606004a7b392a2d4c45c6851c29a0a0a6800000000ffff";
const DATA_STREAM: &str = "800300010000002f0000000300000000000002a5470c295029930829b08bc079c3c2c0c280818181b30812c199a084cf\
    6800000000ffff";
/// A ping, data of the second stream, and its end.
const TRAFFIC: &str = "800300060000000400000001000000030000000568656c6c6f0000000301000000";

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |byte: &u8| u8::try_from(char::from(*byte).to_digit(16).expect("a digit")).expect("a digit");
    hex.as_bytes().chunks(2).map(|pair| digit(&pair[0]) << 4 | digit(&pair[1])).collect()
}

fn header(headers: &[(String, String)], name: &str) -> Option<String> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
}

#[test]
fn streams_of_a_client_are_opened_and_read() {
    let mut connection = Connection::default();
    let input = [bytes(ERROR_STREAM), bytes(DATA_STREAM), bytes(TRAFFIC)].concat();
    // Frames may be cut anywhere.
    let events: Vec<Event> = input.chunks(7).flat_map(|part| connection.receive(part).expect("valid frames")).collect();
    let [Event::Opened { stream: 1, headers: error }, Event::Opened { stream: 3, headers: data }, rest @ ..] =
        events.as_slice()
    else {
        panic!("{events:?}");
    };
    assert_eq!(header(error, "streamtype").as_deref(), Some("error"));
    let values = ["streamtype", "port", "requestid"].map(|name| header(data, name).unwrap_or_default());
    assert_eq!(values, ["data", "8080", "0"]);
    let mut received = Vec::new();
    let mut has_ended = false;
    for event in rest {
        match event {
            Event::Data { stream: 3, bytes } => received.extend(bytes),
            Event::Ended { stream: 3 } => has_ended = true,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((received.as_slice(), has_ended), (&b"hello"[..], true));
    assert_eq!(connection.take_output(), bytes("800300060000000400000001"), "the ping is answered");
}

#[test]
fn replies_data_and_ends_are_written() {
    let mut connection = Connection::default();
    connection.receive(&bytes(ERROR_STREAM)).expect("a stream");
    connection.accept(1);
    connection.write(1, b"no");
    connection.end(1);
    connection.write(1, b"dropped after the end");
    let reply = "800300020000001800000001".to_owned() + "78f9e3c6a7c2" + "000400fbff00000000" + "000000ffff";
    assert_eq!(connection.take_output(), bytes(&(reply + "00000001000000026e6f" + "0000000101000000")));
    assert_eq!(connection.receive(&bytes("0000000101000000")), Ok(vec![Event::Ended { stream: 1 }]));
    connection.reset(1);
    assert!(!connection.has_output(), "a stream that has ended on both sides is forgotten");
}

#[test]
fn streams_with_wrong_ids_are_reset_and_wrong_frames_end_the_connection() {
    let mut connection = Connection::default();
    let even = ERROR_STREAM.replacen("2900000001", "2900000002", 1);
    assert_eq!(connection.receive(&bytes(&even)), Ok(Vec::new()));
    assert_eq!(connection.take_output(), bytes("80030003000000080000000200000001"));
    let error = |hex: &str| Connection::default().receive(&bytes(hex)).expect_err("an error");
    assert_eq!(error("8002000600000004"), SpdyError::Version);
    assert_eq!(error("8003000600ffffff"), SpdyError::TooLong);
    assert_eq!(error("800300060000000100"), SpdyError::TooShort);
    assert_eq!(error("800300010000000b0000000100000000000000"), SpdyError::Headers);
}

#[test]
fn headers_are_bounded() {
    // Each byte of the frame stands for many of the headers.
    let mut encoder = flate2::Compress::new(flate2::Compression::best(), true);
    let mut compressed = Vec::with_capacity(64 * 1024);
    let block = [1_u32.to_be_bytes().to_vec(), vec![0; 1024 * 1024]].concat();
    encoder.compress_vec(&block, &mut compressed, flate2::FlushCompress::Sync).expect("compressed");
    let length = u32::try_from(compressed.len() + 10).expect("short");
    let frame = [bytes("80030001"), length.to_be_bytes().to_vec(), bytes("00000001000000000000"), compressed].concat();
    assert_eq!(Connection::default().receive(&frame), Err(SpdyError::Headers));
}

/// Arbitrary control frames with uncompressed headers behind them.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop::collection::vec(any::<u8>(), 0..40);
    (0_u16..10, any::<u8>(), 0_u32..9, payload, any::<bool>()).prop_map(|(kind, flags, stream, payload, is_data)| {
        let payload = match kind {
            1 => [vec![0; 6], bytes("7801"), uncompressed_block(&payload)].concat(),
            _ => payload,
        };
        let length = u32::try_from(payload.len() + 4).expect("short");
        let head = if is_data { stream } else { 0x8003_0000 | u32::from(kind) };
        let stream = stream.to_be_bytes().to_vec();
        let sized = (u32::from(flags) << 24 | length).to_be_bytes().to_vec();
        [head.to_be_bytes().to_vec(), sized, stream, payload].concat()
    })
}

proptest! {
    #[test]
    fn no_input_panics(input in prop::collection::vec(any::<u8>(), 0..300)) {
        let _result = Connection::default().receive(&input);
    }

    #[test]
    fn no_frames_panic(frames in prop::collection::vec(frame(), 0..20)) {
        let mut connection = Connection::default();
        for frame in frames {
            let Ok(events) = connection.receive(&frame) else { return Ok(()) };
            for event in events {
                if let Event::Opened { stream, .. } = event {
                    connection.accept(stream);
                }
            }
        }
        connection.close();
    }

    #[test]
    fn events_do_not_depend_on_where_frames_are_cut(frames in prop::collection::vec(frame(), 0..8), cut in 1_usize..40) {
        let input = frames.concat();
        let join = |events: Vec<Event>| {
            let mut joined: Vec<Event> = Vec::new();
            for event in events {
                match (joined.last_mut(), event) {
                    (Some(Event::Data { stream: last, bytes }), Event::Data { stream, bytes: more }) if *last == stream => {
                        bytes.extend(more);
                    }
                    (_, event) => joined.push(event),
                }
            }
            joined
        };
        let (mut whole, mut parts) = (Connection::default(), Connection::default());
        if let Ok(expected) = whole.receive(&input) {
            let received: Result<Vec<_>, _> = input.chunks(cut).map(|part| parts.receive(part)).collect();
            prop_assert_eq!(join(received.expect("valid frames").concat()), join(expected));
        }
    }
}
