//! The header `traceparent` of the W3C Trace Context: the position of a request in a trace.

use std::fmt;

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use sha2::{Digest, Sha256};

/// Position in a trace: the trace, and the span that is the parent of what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traceparent {
    trace: [u8; 16],
    span: [u8; 8],
    flags: u8,
}

impl Traceparent {
    /// Parses version 00 of the header; `None` for any other text, which receivers ignore.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if version != "00" || parts.next().is_some() || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return None;
        }
        let mut parsed = Self { trace: [0; 16], span: [0; 8], flags: 0 };
        hex::decode_to_slice(trace, &mut parsed.trace).ok()?;
        hex::decode_to_slice(span, &mut parsed.span).ok()?;
        let mut flag_byte = [0; 1];
        hex::decode_to_slice(flags, &mut flag_byte).ok()?;
        parsed.flags = flag_byte[0];
        (parsed.trace != [0; 16] && parsed.span != [0; 8]).then_some(parsed)
    }

    /// Returns the position of a span; `None` if the span is not recorded.
    pub(crate) fn from_span(context: &SpanContext) -> Option<Self> {
        context.is_valid().then(|| Self {
            trace: context.trace_id().to_bytes(),
            span: context.span_id().to_bytes(),
            flags: context.trace_flags().to_u8(),
        })
    }

    /// Returns the position as the parent of a span.
    pub(crate) fn to_span_context(self) -> SpanContext {
        SpanContext::new(
            TraceId::from_bytes(self.trace),
            SpanId::from_bytes(self.span),
            TraceFlags::new(self.flags),
            true,
            TraceState::default(),
        )
    }
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", hex::encode(self.trace), hex::encode(self.span), self.flags)
    }
}

/// Returns the trace of a request that has no position in one: the request id itself if it has the form of a trace id, as
/// generated ones have, and otherwise a digest of it. So a trace is found by the request id, and the other way round.
pub(crate) fn trace_of_request(id: &[u8]) -> TraceId {
    let mut trace = [0; 16];
    let is_lower = id.iter().all(|byte| !byte.is_ascii_uppercase());
    if is_lower && hex::decode_to_slice(id, &mut trace).is_ok() && trace != [0; 16] {
        return TraceId::from_bytes(trace);
    }
    trace.copy_from_slice(&Sha256::digest(id)[..16]);
    TraceId::from_bytes(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_header_is_read_and_written_and_any_other_is_ignored() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(Traceparent::parse(text).unwrap().to_string(), text);
        for invalid in [
            "",
            "00",
            "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            "00-0af7651916cd43dd8448eb211c8031-b7ad6b7169203331-01",
        ] {
            assert_eq!(Traceparent::parse(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn the_trace_of_a_request_is_its_id_or_a_digest_of_it() {
        let id = "0af7651916cd43dd8448eb211c80319c";
        assert_eq!(trace_of_request(id.as_bytes()).to_string(), id);
        for other in ["a", "0AF7651916CD43DD8448EB211C80319C", "00000000000000000000000000000000"] {
            let trace = trace_of_request(other.as_bytes());
            assert_ne!(trace, TraceId::INVALID);
            assert_eq!(trace, trace_of_request(other.as_bytes()));
            assert_ne!(trace.to_string(), other.to_lowercase());
        }
    }
}
