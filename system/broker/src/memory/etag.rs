//! The identity of an answer to a poll: the epoch and the version of the agent's desired set, signed, and what it holds.
//!
//! Signed, because a version that the database does not know yet means that the database went back in time, and
//! nobody but a broker of this database may say so. What it holds, because a set may change and change back.

use http::HeaderValue;
use ring::{digest, hmac};
use sindri_model::{AgentId, Epoch, Sequence};

use crate::store::TargetState;

/// How much of a signature or a digest is kept.
const KEPT_BYTES: usize = 8;

/// Signs the identities of answers.
#[derive(Clone, Debug)]
pub(crate) struct EtagKey(hmac::Key);

impl EtagKey {
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// As the header has it, quotes included.
    pub(crate) fn etag(&self, agent: AgentId, desired: &TargetState) -> HeaderValue {
        let (epoch, version) = (desired.epoch, desired.version);
        let text = format!("\"{epoch}.{version}.{}.{}\"", self.signature(agent, epoch, version), content(desired));
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
        short_hex(hmac::sign(&self.0, format!("{agent} {epoch} {version}").as_bytes()).as_ref())
    }
}

/// The same for the same objects in the same order, until the agent is to look again.
fn content(desired: &TargetState) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    for desired in &desired.revisions {
        context.update(desired.revision.id.to_string().as_bytes());
    }
    if desired.recheck_version > Sequence::default() {
        context.update(format!(" {}", desired.recheck_version).as_bytes());
    }
    short_hex(context.finish().as_ref())
}

fn short_hex(bytes: &[u8]) -> String {
    bytes.iter().take(KEPT_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// Whether an `If-None-Match` header names an answer that says the same: this one, or one of the same epoch that holds
/// the same.
pub(crate) fn is_named(etag: &HeaderValue, if_none_match: &[u8]) -> bool {
    let etag = etag.as_bytes();
    if etag == if_none_match {
        return true;
    }
    let (Ok(etag), Ok(header)) = (std::str::from_utf8(etag), std::str::from_utf8(if_none_match)) else { return false };
    tags(header).any(|tag| tag == etag || says_the_same(tag, etag))
}

fn says_the_same(tag: &str, etag: &str) -> bool {
    let ends = |text| -> Option<(&str, &str)> { Some((str::split_once(text, '.')?.0, str::rsplit_once(text, '.')?.1)) };
    ends(tag).is_some_and(|said| ends(etag) == Some(said))
}

fn tags(header: &str) -> impl Iterator<Item = &str> {
    header.split(',').map(|part| part.trim().trim_start_matches("W/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sindri_model::Entropy;
    use sindri_model::wire::AgentStatus;

    fn agent(byte: u8) -> AgentId {
        AgentId::mint(&Entropy::new(move |bytes| bytes.fill(byte)))
    }

    fn desired(epoch: i64, version: i64) -> TargetState {
        TargetState {
            epoch: Epoch(epoch),
            version: Sequence(version),
            recheck_version: Sequence(0),
            status: AgentStatus::Active,
            revisions: Vec::new(),
        }
    }

    #[test]
    fn an_answer_of_the_same_epoch_that_holds_the_same_is_the_same() {
        let key = EtagKey::new(b"secret");
        let etag = |epoch, version| key.etag(agent(1), &desired(epoch, version));
        assert!(is_named(&etag(1, 7), etag(1, 5).as_bytes()));
        assert!(!is_named(&etag(2, 7), etag(1, 7).as_bytes()));
        assert!(!is_named(&etag(1, 7), b"\"1.7.aa.bb\""));
        assert!(!is_named(&etag(1, 7), "\"1.\u{e9}.\"".as_bytes()));
    }

    #[test]
    fn an_agent_that_is_to_look_again_gets_another_answer() {
        let key = EtagKey::new(b"secret");
        let etag = |recheck_version| {
            key.etag(agent(1), &TargetState { recheck_version: Sequence(recheck_version), ..desired(1, 7) })
        };
        assert!(!is_named(&etag(7), etag(0).as_bytes()));
        assert!(!is_named(&etag(7), etag(6).as_bytes()));
        assert!(is_named(&etag(7), etag(7).as_bytes()));
    }

    #[test]
    fn an_identity_is_read_back_and_nobody_else_can_make_one() {
        let key = EtagKey::new(b"secret");
        let etag = key.etag(agent(1), &desired(2, 7));
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
