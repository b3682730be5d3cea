//! Text inside an address: what is not plain is percent-encoded.

use std::borrow::Cow;
use std::fmt::Write;

/// `text` as a value of a query.
pub fn encoded(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte) {
            out.push(byte as char);
        } else {
            write!(out, "%{byte:02X}").expect("writing to a string does not fail");
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::encoded;

    #[test]
    fn what_has_a_meaning_in_an_address_is_encoded() {
        assert_eq!(encoded("a-1.b_c~"), "a-1.b_c~");
        assert_eq!(encoded("a&b=c d/ü%"), "a%26b%3Dc%20d%2F%C3%BC%25");
    }
}
