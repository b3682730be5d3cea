//! Preset dictionary of the compressed headers of SPDY/3.

/// Checksum (Adler-32) of the dictionary, by which a compressed stream names it.
pub(super) const CHECKSUM: u32 = 0xe3c6_a7c2;

/// Words that the dictionary lists with their lengths.
const WORDS: &str = "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges \
    age allow authorization cache-control connection content-base content-encoding content-language content-length \
    content-location content-md5 content-range content-type date etag expect expires from host if-match if-modified-since \
    if-none-match if-range if-unmodified-since last-modified location max-forwards pragma proxy-authenticate \
    proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning \
    www-authenticate method get status 200+OK version HTTP/1.1 url public set-cookie keep-alive origin";

/// End of the dictionary: other usual values.
const VALUES: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505\
    203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden\
    404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable\
    Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT\
    chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,\
    publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

/// Returns the dictionary.
pub(super) fn dictionary() -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in WORDS.split(' ') {
        let word = word.replace('+', " ");
        bytes.extend(u32::try_from(word.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend(word.as_bytes());
    }
    bytes.extend(VALUES.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dictionary_has_the_checksum_of_the_protocol() {
        let (mut low, mut high) = (1_u32, 0_u32);
        for byte in dictionary() {
            low = (low + u32::from(byte)) % 65_521;
            high = (high + low) % 65_521;
        }
        assert_eq!(high << 16 | low, CHECKSUM);
    }
}
