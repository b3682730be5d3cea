//! Cache of the response to each agent's poll, and the notification that wakes polls when it changes.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::HeaderValue;
use sindri_model::wire::AgentStatus;
use sindri_model::{AgentId, Sequence};
use tokio::sync::Notify;

/// Limit on the size of all cached bodies together. Above it the oldest bodies are dropped and read from the store again.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Response to a poll as it is cached. Clones share the body.
#[derive(Clone, Debug)]
pub(crate) struct CachedTargetState {
    /// Value of the `ETag` header, with quotes.
    pub etag: HeaderValue,
    /// Value of the epoch header, which a 304 response has too.
    pub epoch: HeaderValue,
    /// Value of the header with the version, which a 304 response has too.
    pub version: HeaderValue,
    /// Status of the agent, which a 304 response has too.
    pub status: AgentStatus,
    /// Number of the newest proposal for the agent, which a 304 response has too.
    pub proposals: Option<Sequence>,
    /// Value of the header with the requests that submitted the newest revisions.
    pub requests: Option<HeaderValue>,
    /// JSON; `None` if it was dropped to stay within the limit.
    pub body: Option<Bytes>,
    /// Positions of the revisions' parts in the JSON.
    pub ranges: Arc<[RevisionRanges]>,
}

/// Positions of a revision's parts in the JSON of a target state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RevisionRanges {
    pub sequence: Sequence,
    /// The bundle: a string with its quotes.
    pub bundle: Range<usize>,
    /// The field with the name of the stack, and the comma before it.
    pub name: Range<usize>,
}

/// Number of times that an agent's entry was invalidated. A response that was read in an older generation is not cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheGeneration(u64);

/// Cached responses by agent.
#[derive(Debug, Default)]
pub(crate) struct TargetStateCache(Mutex<CacheState>);

#[derive(Debug, Default)]
struct CacheState {
    agents: BTreeMap<AgentId, Entry>,
    /// Agents whose bodies are cached, oldest first.
    bodies: VecDeque<AgentId>,
    /// Size of these bodies together.
    body_bytes: usize,
    is_closing: bool,
}

#[derive(Debug, Default)]
struct Entry {
    generation: u64,
    response: Option<CachedTargetState>,
    /// Cached without a response too: an agent may send heartbeats and not poll.
    status: Option<AgentStatus>,
    changed: Option<Arc<Notify>>,
}

impl TargetStateCache {
    /// Returns the cached response of an agent.
    pub(crate) fn get(&self, agent: AgentId) -> Option<CachedTargetState> {
        self.lock().agents.get(&agent)?.response.clone()
    }

    /// Returns the cached status of an agent.
    pub(crate) fn agent_status(&self, agent: AgentId) -> Option<AgentStatus> {
        self.lock().agents.get(&agent)?.status
    }

    /// Caches the status of an agent unless its entry was invalidated since `generation`.
    pub(crate) fn insert_status(&self, agent: AgentId, status: AgentStatus, generation: CacheGeneration) {
        let mut state = self.lock();
        let entry = state.agents.entry(agent).or_default();
        if entry.generation == generation.0 {
            entry.status = Some(status);
        }
    }

    /// Returns the generation of an agent's entry. Call it before reading the store, and pass it to [`Self::insert`].
    pub(crate) fn generation(&self, agent: AgentId) -> CacheGeneration {
        CacheGeneration(self.lock().agents.entry(agent).or_default().generation)
    }

    /// Caches the response of an agent unless its entry was invalidated since `generation`.
    pub(crate) fn insert(&self, agent: AgentId, response: CachedTargetState, generation: CacheGeneration) {
        let mut state = self.lock();
        let entry = state.agents.entry(agent).or_default();
        if entry.generation == generation.0 {
            drop_body(&mut state, agent);
            let size = response.body.as_ref().map_or(0, Bytes::len);
            if let Some(entry) = state.agents.get_mut(&agent) {
                entry.status = Some(response.status);
                entry.response = Some(response);
            }
            cache_body(&mut state, agent, size);
        }
    }

    /// Drops an agent's entry, because its target state or status may have changed, and wakes its polls.
    pub(crate) fn invalidate(&self, agent: AgentId) {
        let mut state = self.lock();
        drop_body(&mut state, agent);
        if let Some(entry) = state.agents.get_mut(&agent) {
            entry.invalidate();
        }
    }

    /// Drops every entry and wakes every poll.
    pub(crate) fn invalidate_all(&self) {
        let mut state = self.lock();
        state.agents.values_mut().for_each(Entry::invalidate);
        state.bodies.clear();
        state.body_bytes = 0;
    }

    /// Wakes every poll and keeps the entries.
    pub(crate) fn wake_all(&self) {
        self.lock().agents.values_mut().for_each(Entry::wake);
    }

    /// Returns the notification that an agent's entry was dropped; `None` during shutdown, when polls must not wait.
    pub(crate) fn change_notification(&self, agent: AgentId) -> Option<Arc<Notify>> {
        let mut state = self.lock();
        let changed = &mut state.agents.entry(agent).or_default().changed;
        let changed = changed.get_or_insert_default().clone();
        (!state.is_closing).then_some(changed)
    }

    /// Wakes every poll and lets none wait from now on.
    pub(crate) fn close(&self) {
        self.lock().is_closing = true;
        self.invalidate_all();
    }

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        // No operation leaves the state half changed, so a poisoned lock is safe to use.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn invalidate(&mut self) {
        self.generation += 1;
        self.response = None;
        self.status = None;
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(changed) = self.changed.take() {
            changed.notify_waiters();
        }
    }
}

fn drop_body(state: &mut CacheState, agent: AgentId) {
    let body = state.agents.get_mut(&agent).and_then(|entry| entry.response.as_mut()?.body.take());
    if let Some(body) = body {
        state.body_bytes -= body.len();
        state.bodies.retain(|cached| *cached != agent);
    }
}

fn cache_body(state: &mut CacheState, agent: AgentId, size: usize) {
    state.bodies.push_back(agent);
    state.body_bytes += size;
    while state.body_bytes > BODY_BYTES_MAX
        && let Some(oldest) = state.bodies.front().copied()
    {
        drop_body(state, oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sindri_model::Entropy;

    fn agent(byte: u8) -> AgentId {
        AgentId::generate(&Entropy::new(move |bytes| bytes.fill(byte)))
    }

    fn response(etag: &'static str, size: usize) -> CachedTargetState {
        CachedTargetState {
            etag: HeaderValue::from_static(etag),
            epoch: HeaderValue::from_static("1"),
            version: HeaderValue::from_static("1.0"),
            status: AgentStatus::Active,
            proposals: None,
            requests: None,
            body: Some(Bytes::from(vec![b' '; size])),
            ranges: Arc::default(),
        }
    }

    #[test]
    fn a_response_read_before_a_change_is_not_cached_after_it() {
        let cache = TargetStateCache::default();
        let generation = cache.generation(agent(1));
        cache.invalidate(agent(1));
        cache.insert(agent(1), response("\"old\"", 1), generation);
        assert!(cache.get(agent(1)).is_none());
        let generation = cache.generation(agent(1));
        cache.insert(agent(1), response("\"new\"", 1), generation);
        assert_eq!(cache.get(agent(1)).unwrap().etag, "\"new\"");
    }

    #[test]
    fn a_status_is_cached_with_a_response_or_alone_until_a_change() {
        let cache = TargetStateCache::default();
        cache.insert(agent(1), response("\"a\"", 1), cache.generation(agent(1)));
        cache.insert_status(agent(2), AgentStatus::Inactive, cache.generation(agent(2)));
        assert_eq!(cache.agent_status(agent(1)), Some(AgentStatus::Active));
        assert_eq!(cache.agent_status(agent(2)), Some(AgentStatus::Inactive));
        let generation = cache.generation(agent(1));
        cache.invalidate(agent(1));
        cache.insert_status(agent(1), AgentStatus::Active, generation);
        assert_eq!(cache.agent_status(agent(1)), None, "it was read before the change");
    }

    #[test]
    fn a_change_of_one_agent_leaves_the_responses_of_others() {
        let cache = TargetStateCache::default();
        for byte in [1, 2] {
            cache.insert(agent(byte), response("\"a\"", 1), cache.generation(agent(byte)));
        }
        cache.invalidate(agent(1));
        assert!(cache.get(agent(1)).is_none());
        assert!(cache.get(agent(2)).is_some());
        cache.invalidate_all();
        assert!(cache.get(agent(2)).is_none());
    }

    #[test]
    fn bodies_are_limited_and_the_oldest_is_dropped_first() {
        let cache = TargetStateCache::default();
        for byte in 1..=3 {
            cache.insert(agent(byte), response("\"a\"", BODY_BYTES_MAX / 2), cache.generation(agent(byte)));
        }
        assert!(cache.get(agent(1)).unwrap().body.is_none());
        assert!(cache.get(agent(2)).unwrap().body.is_some());
        assert!(cache.get(agent(3)).unwrap().body.is_some());
        assert_eq!(cache.lock().body_bytes, BODY_BYTES_MAX / 2 * 2);
        cache.invalidate(agent(2));
        assert_eq!(cache.lock().body_bytes, BODY_BYTES_MAX / 2);
    }

    #[tokio::test]
    async fn a_notification_fires_only_for_a_change_of_its_agent() {
        let cache = TargetStateCache::default();
        let (one, two) = (cache.change_notification(agent(1)).unwrap(), cache.change_notification(agent(2)).unwrap());
        let (mut one, mut two) = (Box::pin(one.notified()), Box::pin(two.notified()));
        assert!(!one.as_mut().enable());
        assert!(!two.as_mut().enable());
        cache.invalidate(agent(1));
        one.await;
        assert!(!two.as_mut().enable());
        cache.close();
        two.await;
        assert!(cache.change_notification(agent(1)).is_none());
    }
}
