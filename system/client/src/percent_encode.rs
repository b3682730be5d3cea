//! Percent-encoding of text that becomes part of a URL.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All characters except those that RFC 3986 calls unreserved.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Encodes `text` as one path segment or one query value.
pub fn percent_encode(text: &str) -> Cow<'_, str> {
    utf8_percent_encode(text, RESERVED).into()
}

#[cfg(test)]
mod tests {
    use super::percent_encode;

    #[test]
    fn reserved_characters_are_encoded() {
        assert_eq!(percent_encode("a-1.b_c~"), "a-1.b_c~");
        assert_eq!(percent_encode("a&b=c d/ü%"), "a%26b%3Dc%20d%2F%C3%BC%25");
    }
}
