//! The last answer to each agent's poll, and who waits for the next.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::HeaderValue;
use sindri_model::AgentId;
use sindri_model::wire::AgentStatus;
use tokio::sync::Notify;

/// All remembered bodies together. Beyond that the oldest are read from the store again when they are asked for.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// An answer to a poll. Clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// As the header has it, quotes included.
    pub etag: HeaderValue,
    /// Sent along even when nothing changed.
    pub epoch: HeaderValue,
    /// The agent's own; sent along too.
    pub status: AgentStatus,
    /// JSON; none if it was too much to keep.
    pub body: Option<Bytes>,
}

/// How often an agent's answer was forgotten; one that was read before is not remembered after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked(u64);

/// The remembered answers.
#[derive(Debug, Default)]
pub(crate) struct Answers(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    agents: BTreeMap<AgentId, Entry>,
    /// Whose bodies are kept, oldest first, and how large they are together.
    bodies: VecDeque<AgentId>,
    body_bytes: usize,
    is_closing: bool,
}

#[derive(Debug, Default)]
struct Entry {
    forgotten: u64,
    answer: Option<Answer>,
    /// Known without an answer too: an agent that only lives does not poll.
    status: Option<AgentStatus>,
    waiting: Option<Arc<Notify>>,
}

impl Answers {
    pub(crate) fn of(&self, agent: AgentId) -> Option<Answer> {
        self.lock().agents.get(&agent)?.answer.clone()
    }

    /// The agent's own status.
    pub(crate) fn status_of(&self, agent: AgentId) -> Option<AgentStatus> {
        self.lock().agents.get(&agent)?.status
    }

    pub(crate) fn remember_status(&self, agent: AgentId, status: AgentStatus, asked: Asked) {
        let mut remembered = self.lock();
        let entry = remembered.agents.entry(agent).or_default();
        if entry.forgotten == asked.0 {
            entry.status = Some(status);
        }
    }

    /// To be asked before the store is, and handed to [`Self::remember`].
    pub(crate) fn asked(&self, agent: AgentId) -> Asked {
        Asked(self.lock().agents.entry(agent).or_default().forgotten)
    }

    pub(crate) fn remember(&self, agent: AgentId, answer: Answer, asked: Asked) {
        let mut remembered = self.lock();
        let entry = remembered.agents.entry(agent).or_default();
        if entry.forgotten == asked.0 {
            drop_body(&mut remembered, agent);
            let size = answer.body.as_ref().map_or(0, Bytes::len);
            if let Some(entry) = remembered.agents.get_mut(&agent) {
                entry.status = Some(answer.status);
                entry.answer = Some(answer);
            }
            keep_body(&mut remembered, agent, size);
        }
    }

    /// What is wanted of this agent, or its status, changed, or may have.
    pub(crate) fn forget(&self, agent: AgentId) {
        let mut remembered = self.lock();
        drop_body(&mut remembered, agent);
        if let Some(entry) = remembered.agents.get_mut(&agent) {
            entry.forget();
        }
    }

    /// Everything changed, or may have.
    pub(crate) fn forget_all(&self) {
        let mut remembered = self.lock();
        remembered.agents.values_mut().for_each(Entry::forget);
        remembered.bodies.clear();
        remembered.body_bytes = 0;
    }

    /// Who is told when the agent's answer is forgotten; nobody waits any more when the broker is about to end.
    pub(crate) fn change_of(&self, agent: AgentId) -> Option<Arc<Notify>> {
        let mut remembered = self.lock();
        let waiting = &mut remembered.agents.entry(agent).or_default().waiting;
        let waiting = waiting.get_or_insert_default().clone();
        (!remembered.is_closing).then_some(waiting)
    }

    /// From now on nobody waits.
    pub(crate) fn close(&self) {
        self.lock().is_closing = true;
        self.forget_all();
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        // Nothing here can be left half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn forget(&mut self) {
        self.forgotten += 1;
        self.answer = None;
        self.status = None;
        if let Some(waiting) = self.waiting.take() {
            waiting.notify_waiters();
        }
    }
}

fn drop_body(remembered: &mut Remembered, agent: AgentId) {
    let body = remembered.agents.get_mut(&agent).and_then(|entry| entry.answer.as_mut()?.body.take());
    if let Some(body) = body {
        remembered.body_bytes -= body.len();
        remembered.bodies.retain(|kept| *kept != agent);
    }
}

fn keep_body(remembered: &mut Remembered, agent: AgentId, size: usize) {
    remembered.bodies.push_back(agent);
    remembered.body_bytes += size;
    while remembered.body_bytes > BODY_BYTES_MAX
        && let Some(oldest) = remembered.bodies.front().copied()
    {
        drop_body(remembered, oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sindri_model::Entropy;

    fn agent(byte: u8) -> AgentId {
        AgentId::mint(&Entropy::new(move |bytes| bytes.fill(byte)))
    }

    fn answer(etag: &'static str, size: usize) -> Answer {
        let (etag, epoch) = (HeaderValue::from_static(etag), HeaderValue::from_static("1"));
        Answer { etag, epoch, status: AgentStatus::Active, body: Some(Bytes::from(vec![b' '; size])) }
    }

    #[test]
    fn an_answer_read_before_a_change_is_not_remembered_after_it() {
        let answers = Answers::default();
        let asked = answers.asked(agent(1));
        answers.forget(agent(1));
        answers.remember(agent(1), answer("\"old\"", 1), asked);
        assert!(answers.of(agent(1)).is_none());
        let asked = answers.asked(agent(1));
        answers.remember(agent(1), answer("\"new\"", 1), asked);
        assert_eq!(answers.of(agent(1)).unwrap().etag, "\"new\"");
    }

    #[test]
    fn a_status_is_remembered_with_an_answer_or_alone_until_something_changes() {
        let answers = Answers::default();
        answers.remember(agent(1), answer("\"a\"", 1), answers.asked(agent(1)));
        answers.remember_status(agent(2), AgentStatus::Inactive, answers.asked(agent(2)));
        assert_eq!(answers.status_of(agent(1)), Some(AgentStatus::Active));
        assert_eq!(answers.status_of(agent(2)), Some(AgentStatus::Inactive));
        let asked = answers.asked(agent(1));
        answers.forget(agent(1));
        answers.remember_status(agent(1), AgentStatus::Active, asked);
        assert_eq!(answers.status_of(agent(1)), None, "it was read before the change");
    }

    #[test]
    fn a_change_of_one_agent_leaves_the_answers_of_others() {
        let answers = Answers::default();
        for byte in [1, 2] {
            answers.remember(agent(byte), answer("\"a\"", 1), answers.asked(agent(byte)));
        }
        answers.forget(agent(1));
        assert!(answers.of(agent(1)).is_none());
        assert!(answers.of(agent(2)).is_some());
        answers.forget_all();
        assert!(answers.of(agent(2)).is_none());
    }

    #[test]
    fn bodies_are_bounded_and_the_oldest_goes_first() {
        let answers = Answers::default();
        for byte in 1..=3 {
            answers.remember(agent(byte), answer("\"a\"", BODY_BYTES_MAX / 2), answers.asked(agent(byte)));
        }
        assert!(answers.of(agent(1)).unwrap().body.is_none());
        assert!(answers.of(agent(2)).unwrap().body.is_some());
        assert!(answers.of(agent(3)).unwrap().body.is_some());
        assert_eq!(answers.lock().body_bytes, BODY_BYTES_MAX / 2 * 2);
        answers.forget(agent(2));
        assert_eq!(answers.lock().body_bytes, BODY_BYTES_MAX / 2);
    }

    #[tokio::test]
    async fn who_waits_for_an_agent_is_woken_by_its_change_alone() {
        let answers = Answers::default();
        let (one, two) = (answers.change_of(agent(1)).unwrap(), answers.change_of(agent(2)).unwrap());
        let (mut one, mut two) = (Box::pin(one.notified()), Box::pin(two.notified()));
        assert!(!one.as_mut().enable());
        assert!(!two.as_mut().enable());
        answers.forget(agent(1));
        one.await;
        assert!(!two.as_mut().enable());
        answers.close();
        two.await;
        assert!(answers.change_of(agent(1)).is_none());
    }
}
