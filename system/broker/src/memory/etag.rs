//! ETag of a target state: epoch and version, their signature, and a digest of the content.
//!
//! Signed, because an ETag with a version above the database's own proves that the database was restored from a backup,
//! and only a broker of this database may prove that. The digest recognizes a target state that has changed and
//! changed back.

use http::HeaderValue;
use ring::{digest, hmac};
use sindri_model::{AgentId, Epoch, Sequence};

use crate::store::TargetState;

/// Length to which signatures and digests are truncated.
const DIGEST_BYTES: usize = 8;

/// Key that signs ETags.
#[derive(Clone, Debug)]
pub(crate) struct EtagKey(hmac::Key);

impl EtagKey {
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// Returns the value of the `ETag` header, with quotes.
    pub(crate) fn create_etag(&self, agent: AgentId, state: &TargetState) -> HeaderValue {
        let (epoch, version) = (state.epoch, state.version);
        let text =
            format!("\"{epoch}.{version}.{}.{}\"", self.sign(agent, epoch, version), compute_content_digest(state));
        HeaderValue::from_str(&text).expect("digits and hex digits are valid in a header")
    }

    /// Returns the epoch and version in an `If-None-Match` header if a broker of this database signed them.
    pub(crate) fn verify(&self, agent: AgentId, if_none_match: &str) -> Option<(Epoch, Sequence)> {
        split_tags(if_none_match).find_map(|tag| {
            let mut parts = tag.trim_matches('"').split('.');
            let epoch = Epoch(parts.next()?.parse().ok()?);
            let version = Sequence(parts.next()?.parse().ok()?);
            (self.sign(agent, epoch, version) == parts.next()?).then_some((epoch, version))
        })
    }

    fn sign(&self, agent: AgentId, epoch: Epoch, version: Sequence) -> String {
        short_hex(hmac::sign(&self.0, format!("{agent} {epoch} {version}").as_bytes()).as_ref())
    }
}

/// Computes the digest of the revisions in their order and of the version of the last recheck.
fn compute_content_digest(state: &TargetState) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    for target in &state.revisions {
        context.update(target.revision.id.to_string().as_bytes());
    }
    if state.recheck_version > Sequence::default() {
        context.update(format!(" {}", state.recheck_version).as_bytes());
    }
    short_hex(context.finish().as_ref())
}

fn short_hex(bytes: &[u8]) -> String {
    hex::encode(&bytes[..DIGEST_BYTES])
}

/// Returns true if an `If-None-Match` header names this ETag, or one with the same epoch and content.
pub(crate) fn matches_if_none_match(etag: &HeaderValue, if_none_match: &[u8]) -> bool {
    let etag = etag.as_bytes();
    if etag == if_none_match {
        return true;
    }
    let (Ok(etag), Ok(header)) = (std::str::from_utf8(etag), std::str::from_utf8(if_none_match)) else { return false };
    split_tags(header).any(|tag| tag == etag || has_same_content(tag, etag))
}

fn has_same_content(tag: &str, etag: &str) -> bool {
    let epoch_and_digest =
        |text| -> Option<(&str, &str)> { Some((str::split_once(text, '.')?.0, str::rsplit_once(text, '.')?.1)) };
    epoch_and_digest(tag).is_some_and(|parts| epoch_and_digest(etag) == Some(parts))
}

fn split_tags(header: &str) -> impl Iterator<Item = &str> {
    header.split(',').map(|part| part.trim().trim_start_matches("W/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sindri_model::Entropy;
    use sindri_model::wire::AgentStatus;

    fn agent(byte: u8) -> AgentId {
        AgentId::generate(&Entropy::new(move |bytes| bytes.fill(byte)))
    }

    fn target_state(epoch: i64, version: i64) -> TargetState {
        TargetState {
            epoch: Epoch(epoch),
            version: Sequence(version),
            recheck_version: Sequence(0),
            status: AgentStatus::Active,
            proposals: None,
            revisions: Vec::new(),
        }
    }

    #[test]
    fn an_etag_of_the_same_epoch_and_content_matches() {
        let key = EtagKey::new(b"secret");
        let etag = |epoch, version| key.create_etag(agent(1), &target_state(epoch, version));
        assert!(matches_if_none_match(&etag(1, 7), etag(1, 5).as_bytes()));
        assert!(!matches_if_none_match(&etag(2, 7), etag(1, 7).as_bytes()));
        assert!(!matches_if_none_match(&etag(1, 7), b"\"1.7.aa.bb\""));
        assert!(!matches_if_none_match(&etag(1, 7), "\"1.\u{e9}.\"".as_bytes()));
    }

    #[test]
    fn a_recheck_changes_the_etag() {
        let key = EtagKey::new(b"secret");
        let etag = |recheck_version| {
            key.create_etag(agent(1), &TargetState { recheck_version: Sequence(recheck_version), ..target_state(1, 7) })
        };
        assert!(!matches_if_none_match(&etag(7), etag(0).as_bytes()));
        assert!(!matches_if_none_match(&etag(7), etag(6).as_bytes()));
        assert!(matches_if_none_match(&etag(7), etag(7).as_bytes()));
    }

    #[test]
    fn an_etag_is_verified_only_with_its_key_and_for_its_agent() {
        let key = EtagKey::new(b"secret");
        let etag = key.create_etag(agent(1), &target_state(2, 7));
        let text = etag.to_str().unwrap();
        assert_eq!(key.verify(agent(1), text), Some((Epoch(2), Sequence(7))));
        assert_eq!(key.verify(agent(1), &format!("\"x\", W/{text}")), Some((Epoch(2), Sequence(7))));
        assert_eq!(key.verify(agent(2), text), None);
        assert_eq!(key.verify(agent(1), &text.replace(".7.", ".8.")), None);
        assert_eq!(EtagKey::new(b"other").verify(agent(1), text), None);
        for nonsense in ["", "*", "\"\"", "\"1.2\"", "\"a.b.c\""] {
            assert_eq!(key.verify(agent(1), nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_header_may_name_several_tags_and_weak_ones() {
        let etag = HeaderValue::from_static("\"a\"");
        assert!(matches_if_none_match(&etag, b"\"a\""));
        assert!(matches_if_none_match(&etag, b"\"b\", W/\"a\""));
        assert!(!matches_if_none_match(&etag, b"a"));
        assert!(!matches_if_none_match(&etag, b"\"b\""));
    }
}
