//! The identity of an answer to a poll: the epoch and the version of the agent's desired set, signed.
//!
//! Signed, because a version that the database does not know yet means that the database went back in time, and
//! nobody but a broker of this database may say so.

use http::HeaderValue;
use ring::hmac;
use sindri_model::{AgentId, Epoch, Sequence};

/// How much of the signature is kept.
const SIGNATURE_BYTES: usize = 8;

/// Signs the identities of answers.
#[derive(Clone, Debug)]
pub(crate) struct EtagKey(hmac::Key);

impl EtagKey {
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// As the header has it, quotes included.
    pub(crate) fn etag(&self, agent: AgentId, epoch: Epoch, version: Sequence) -> HeaderValue {
        let text = format!("\"{epoch}.{version}.{}\"", self.signature(agent, epoch, version));
        HeaderValue::from_str(&text).expect("digits and hex digits are fit for a header")
    }

    /// The epoch and version that an `If-None-Match` header names, if this database has ever given them out.
    pub(crate) fn read(&self, agent: AgentId, if_none_match: &str) -> Option<(Epoch, Sequence)> {
        tags(if_none_match).find_map(|tag| {
            let mut parts = tag.trim_matches('"').split('.');
            let epoch = Epoch(parts.next()?.parse().ok()?);
            let version = Sequence(parts.next()?.parse().ok()?);
            (self.signature(agent, epoch, version) == parts.next()?).then_some((epoch, version))
        })
    }

    fn signature(&self, agent: AgentId, epoch: Epoch, version: Sequence) -> String {
        let tag = hmac::sign(&self.0, format!("{agent} {epoch} {version}").as_bytes());
        tag.as_ref().iter().take(SIGNATURE_BYTES).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Whether an `If-None-Match` header names an ETag.
pub(crate) fn is_named(etag: &HeaderValue, if_none_match: &[u8]) -> bool {
    etag.as_bytes() == if_none_match
        || std::str::from_utf8(if_none_match)
            .is_ok_and(|header| tags(header).any(|tag| tag.as_bytes() == etag.as_bytes()))
}

fn tags(header: &str) -> impl Iterator<Item = &str> {
    header.split(',').map(|part| part.trim().trim_start_matches("W/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sindri_model::Entropy;

    fn agent(byte: u8) -> AgentId {
        AgentId::mint(&Entropy::new(move |bytes| bytes.fill(byte)))
    }

    #[test]
    fn an_identity_is_read_back_and_nobody_else_can_make_one() {
        let key = EtagKey::new(b"secret");
        let etag = key.etag(agent(1), Epoch(2), Sequence(7));
        let text = etag.to_str().unwrap();
        assert_eq!(key.read(agent(1), text), Some((Epoch(2), Sequence(7))));
        assert_eq!(key.read(agent(1), &format!("\"x\", W/{text}")), Some((Epoch(2), Sequence(7))));
        assert_eq!(key.read(agent(2), text), None);
        assert_eq!(key.read(agent(1), &text.replace(".7.", ".8.")), None);
        assert_eq!(EtagKey::new(b"other").read(agent(1), text), None);
        for nonsense in ["", "*", "\"\"", "\"1.2\"", "\"a.b.c\""] {
            assert_eq!(key.read(agent(1), nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_header_may_name_several_tags_and_weak_ones() {
        let etag = HeaderValue::from_static("\"a\"");
        assert!(is_named(&etag, b"\"a\""));
        assert!(is_named(&etag, b"\"b\", W/\"a\""));
        assert!(!is_named(&etag, b"a"));
        assert!(!is_named(&etag, b"\"b\""));
    }
}
