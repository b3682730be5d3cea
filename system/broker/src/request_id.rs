//! Request ids, which connect the log lines of a request with its response.
//!
//! A client may send one, otherwise the broker generates it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, HeaderValue};
use sindri_model::Entropy;
use sindri_traces::{REQUEST_ID, RequestContext, TRACEPARENT, Traceparent};

/// Limit on the id of a client.
const CHARS_MAX: usize = 128;

/// Generates unique ids: random bytes of the process, and a counter.
pub(crate) struct RequestIds {
    process: [u8; 8],
    count: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new(entropy: &Entropy) -> Self {
        Self { process: entropy.bytes(), count: AtomicU64::new(0) }
    }

    /// Returns the id of a request and its position in a trace, if the client sent one.
    pub(crate) fn read_context(&self, headers: &HeaderMap) -> RequestContext {
        let traceparent = headers.get(TRACEPARENT).and_then(|value| Traceparent::parse(value.to_str().ok()?));
        RequestContext { id: self.get_or_generate(headers), traceparent }
    }

    /// Returns the id that the client sent if it is valid, otherwise a new one.
    fn get_or_generate(&self, headers: &HeaderMap) -> HeaderValue {
        let sent = headers.get(REQUEST_ID).filter(|value| is_valid(value.as_bytes()));
        // Copied, because a header keeps the whole buffer of its connection alive.
        sent.and_then(|value| HeaderValue::from_bytes(value.as_bytes()).ok()).unwrap_or_else(|| self.generate())
    }

    fn generate(&self) -> HeaderValue {
        let count = self.count.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let mut text = [0; 32];
        let (process_digits, count_digits) = text.split_at_mut(16);
        hex::encode_to_slice(self.process, process_digits).expect("two digits per byte");
        hex::encode_to_slice(count, count_digits).expect("two digits per byte");
        HeaderValue::from_bytes(&text).expect("digits are valid in a header")
    }
}

impl fmt::Debug for RequestIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestIds")
    }
}

fn is_valid(text: &[u8]) -> bool {
    (1..=CHARS_MAX).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request_headers(text: &str) -> HeaderMap {
        HeaderMap::from_iter([(REQUEST_ID, HeaderValue::from_bytes(text.as_bytes()).unwrap())])
    }

    #[test]
    fn a_valid_id_is_kept_and_any_other_is_replaced() {
        let ids = RequestIds::new(&Entropy::new(|bytes| bytes.fill(0xab)));
        for valid in ["a", "trace-1/2", &"x".repeat(128)] {
            assert_eq!(ids.get_or_generate(&request_headers(valid)), valid);
        }
        for invalid in ["", "a b", "ä", &"x".repeat(129)] {
            let generated = ids.get_or_generate(&request_headers(invalid));
            assert!(generated.to_str().unwrap().starts_with("abababababababab00000000000000"), "{generated:?}");
        }
        assert_ne!(ids.get_or_generate(&HeaderMap::new()), ids.get_or_generate(&HeaderMap::new()));
    }
}
