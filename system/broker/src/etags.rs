//! What each agent was last answered, so that an idle poll asks the store nothing.
//!
//! Any change that may concern any agent forgets everything: simple and right. To forget only what a change
//! concerns is left for when it is needed.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sindri_model::{AgentId, Checksum, Epoch};

use crate::store::DesiredSet;

/// The identity of one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Etag {
    /// As the header has it, quotes included.
    pub text: String,
    /// Sent along even when nothing changed.
    pub epoch: Epoch,
}

impl Etag {
    /// The same for the same epoch and the same objects in the same order.
    pub(crate) fn of(desired: &DesiredSet) -> Self {
        let mut content = desired.epoch.to_string();
        for object in &desired.objects {
            content.push(' ');
            content.push_str(&object.id.to_string());
        }
        Self { text: format!("\"{}\"", Checksum::of(&content)), epoch: desired.epoch }
    }

    /// Whether the value of an `If-None-Match` header names it.
    pub(crate) fn is_in(&self, if_none_match: &str) -> bool {
        if_none_match.split(',').map(|part| part.trim().trim_start_matches("W/")).any(|part| part == self.text)
    }
}

/// How often something was forgotten; an answer computed before is not remembered after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Generation(u64);

/// The remembered answers.
#[derive(Debug, Default)]
pub(crate) struct Etags(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    generation: Generation,
    of_agent: BTreeMap<AgentId, Etag>,
}

impl Etags {
    /// To be asked before the store is, and handed to [`Self::remember`].
    pub(crate) fn generation(&self) -> Generation {
        self.lock().generation
    }

    pub(crate) fn of(&self, agent: AgentId) -> Option<Etag> {
        self.lock().of_agent.get(&agent).cloned()
    }

    pub(crate) fn remember(&self, agent: AgentId, etag: Etag, asked: Generation) {
        let mut remembered = self.lock();
        if remembered.generation == asked {
            remembered.of_agent.insert(agent, etag);
        }
    }

    /// Something changed, or may have.
    pub(crate) fn forget(&self) {
        let mut remembered = self.lock();
        remembered.generation.0 += 1;
        remembered.of_agent.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        // Nothing here can be left half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sindri_model::Entropy;

    fn etag(text: &str) -> Etag {
        Etag { text: format!("\"{text}\""), epoch: Epoch(1) }
    }

    #[test]
    fn an_answer_computed_before_a_change_is_not_remembered_after_it() {
        let (etags, agent) = (Etags::default(), AgentId::mint(&Entropy::new(|_| ())));
        let asked = etags.generation();
        etags.forget();
        etags.remember(agent, etag("old"), asked);
        assert_eq!(etags.of(agent), None);
        etags.remember(agent, etag("new"), etags.generation());
        assert_eq!(etags.of(agent), Some(etag("new")));
        etags.forget();
        assert_eq!(etags.of(agent), None);
    }

    #[test]
    fn a_header_may_name_several_tags_and_weak_ones() {
        assert!(etag("a").is_in("\"a\""));
        assert!(etag("a").is_in("\"b\", W/\"a\""));
        assert!(!etag("a").is_in("a"));
        assert!(!etag("a").is_in("\"b\""));
    }
}
