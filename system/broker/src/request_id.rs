//! The name of a request, by which the lines of its log and its answer are found again.
//!
//! A caller may bring one; else it is minted. It travels with the task and not in spans: a request that logs
//! nothing formats nothing.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, HeaderName, HeaderValue};
use sindri_model::Entropy;

/// The header that brings the name and that carries it back.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest name that a caller may bring.
const CHARS_MAX: usize = 128;

tokio::task_local! {
    static CURRENT: HeaderValue;
}

/// Shows the name of the request that this code runs for; none outside of requests.
pub fn with_request_id<R>(show: impl FnOnce(Option<&str>) -> R) -> R {
    let mut show = Some(show);
    let shown = CURRENT.try_with(|id| show.take().map(|show| show(id.to_str().ok())));
    match shown {
        Ok(Some(shown)) => shown,
        Ok(None) | Err(_) => show.take().expect("shown at most once")(None),
    }
}

/// Runs a future for the request of this name.
pub(crate) async fn in_request<F: Future>(id: HeaderValue, future: F) -> F::Output {
    CURRENT.scope(id, future).await
}

/// Mints names that differ: a part that is the process's own, and a count.
pub(crate) struct RequestIds {
    process: [u8; 8],
    count: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new(entropy: &Entropy) -> Self {
        Self { process: entropy.bytes(), count: AtomicU64::new(0) }
    }

    /// The name that the caller brought, if it is fit to be logged; else a new one.
    pub(crate) fn of(&self, headers: &HeaderMap) -> HeaderValue {
        let brought = headers.get(REQUEST_ID).filter(|value| is_fit(value.as_bytes()));
        brought.cloned().unwrap_or_else(|| self.mint())
    }

    fn mint(&self) -> HeaderValue {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let count = self.count.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let mut text = [0; 32];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.process.iter().chain(&count)) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        HeaderValue::from_bytes(&text).expect("digits are visible")
    }
}

impl fmt::Debug for RequestIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestIds")
    }
}

fn is_fit(text: &[u8]) -> bool {
    (1..=CHARS_MAX).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brought(text: &str) -> HeaderMap {
        HeaderMap::from_iter([(REQUEST_ID, HeaderValue::from_bytes(text.as_bytes()).unwrap())])
    }

    #[test]
    fn a_name_that_is_fit_is_kept_and_any_other_is_replaced() {
        let ids = RequestIds::new(&Entropy::new(|bytes| bytes.fill(0xab)));
        for fit in ["a", "trace-1/2", &"x".repeat(128)] {
            assert_eq!(ids.of(&brought(fit)), fit);
        }
        for unfit in ["", "a b", "ä", &"x".repeat(129)] {
            let minted = ids.of(&brought(unfit));
            assert!(minted.to_str().unwrap().starts_with("abababababababab00000000000000"), "{minted:?}");
        }
        assert_ne!(ids.of(&HeaderMap::new()), ids.of(&HeaderMap::new()));
    }

    #[test]
    fn the_name_is_seen_inside_of_the_request_only() {
        let seen = || with_request_id(|id| id.map(str::to_owned));
        let inside = CURRENT.sync_scope(HeaderValue::from_static("a"), seen);
        assert_eq!((inside.as_deref(), seen()), (Some("a"), None));
    }
}
