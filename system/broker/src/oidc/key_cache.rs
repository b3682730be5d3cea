//! The cached keys of a provider, and the decision when they are fetched. Pure: the time is passed in.

use std::time::Duration;

use tokio::time::Instant;

use super::keys::{KeySet, PublicKey};
use super::token::TokenError;

/// Age from which cached keys are fetched again. They stay in use until then.
const STALE_AGE: Duration = Duration::from_secs(60 * 60);
/// Age from which cached keys are not used: keys that the provider has withdrawn must not stay valid because it cannot be reached.
const AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Least time between two fetches, so that tokens with unknown keys cause no load at the provider.
const FETCH_INTERVAL: Duration = Duration::from_secs(10);

/// Keys of a provider, and the times of their fetches.
#[derive(Debug, Default)]
pub(super) struct KeyCache {
    keys: KeySet,
    /// Time at which the fetch of the keys began.
    fetched_at: Option<Instant>,
    /// Time at which the last fetch ended, with or without success.
    ended_at: Option<Instant>,
    /// Number of fetches that have ended.
    ended: u64,
    is_fetching: bool,
}

/// Result of a lookup.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// The key is usable now. Keys that are stale should be fetched again beside.
    Found { key: PublicKey, is_stale: bool },
    /// The key may be among those that the next fetch returns.
    NeedsFetch,
    /// The keys were fetched a moment ago, and the key cannot be used.
    Missing(TokenError),
}

impl KeyCache {
    /// Looks up a key.
    pub(super) fn look_up(&self, id: Option<&str>, now: Instant) -> Lookup {
        match self.find(id, now) {
            Ok(key) => Lookup::Found { key, is_stale: !is_within(self.fetched_at, STALE_AGE, now) },
            Err(_) if self.is_fetching || self.may_fetch(now) => Lookup::NeedsFetch,
            Err(error) => Lookup::Missing(error),
        }
    }

    /// Returns a key, if it is among the cached ones and these are not too old.
    pub(super) fn find(&self, id: Option<&str>, now: Instant) -> Result<PublicKey, TokenError> {
        if !is_within(self.fetched_at, AGE_MAX, now) {
            return Err(TokenError::NoKeys);
        }
        self.keys.find(id).cloned().ok_or(TokenError::UnknownKey)
    }

    /// Returns the number of fetches that have ended.
    pub(super) fn count_ended(&self) -> u64 {
        self.ended
    }

    /// Begins a fetch; returns false if one is in progress or has just ended.
    pub(super) fn begin_fetch(&mut self, now: Instant) -> bool {
        let begins = !self.is_fetching && self.may_fetch(now);
        self.is_fetching |= begins;
        begins
    }

    /// Ends the fetch that began at a time. Keys that were read replace the cached ones, also if none of them is usable; without them
    /// the cached ones stay.
    pub(super) fn end_fetch(&mut self, keys: Option<KeySet>, began: Instant, now: Instant) {
        if let Some(keys) = keys {
            (self.keys, self.fetched_at) = (keys, Some(began));
        }
        (self.is_fetching, self.ended_at) = (false, Some(now));
        self.ended += 1;
    }

    /// Forgets the end of the last fetch, so that the next one may begin.
    #[cfg(test)]
    pub(super) fn forget_last_end(&mut self) {
        self.ended_at = None;
    }

    fn may_fetch(&self, now: Instant) -> bool {
        !is_within(self.ended_at, FETCH_INTERVAL, now)
    }
}

/// Returns true if there is a time and it was less than `age` ago.
fn is_within(time: Option<Instant>, age: Duration, now: Instant) -> bool {
    time.is_some_and(|time| now.duration_since(time) < age)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn keys(ids: &[&str]) -> KeySet {
        let coordinate = "A".repeat(43);
        let to_key = |id: &&str| json!({"kty": "EC", "crv": "P-256", "x": coordinate, "y": coordinate, "kid": id});
        let document = json!({"keys": ids.iter().map(to_key).collect::<Vec<_>>()});
        KeySet::parse(document.to_string().as_bytes()).unwrap()
    }

    /// Fetches keys at a time, in no time.
    fn fetch(cache: &mut KeyCache, keys: Option<KeySet>, now: Instant) {
        assert!(cache.begin_fetch(now));
        cache.end_fetch(keys, now, now);
    }

    fn is_found(cache: &KeyCache, id: &str, now: Instant) -> bool {
        matches!(cache.look_up(Some(id), now), Lookup::Found { .. })
    }

    #[test]
    fn an_unknown_key_is_fetched_but_not_more_often_than_allowed() {
        let (mut cache, start) = (KeyCache::default(), Instant::now());
        assert_eq!(cache.look_up(Some("1"), start), Lookup::NeedsFetch);
        fetch(&mut cache, Some(keys(&["1"])), start);
        assert!(is_found(&cache, "1", start));
        let soon = start + FETCH_INTERVAL - Duration::from_millis(1);
        assert_eq!(cache.look_up(Some("2"), soon), Lookup::Missing(TokenError::UnknownKey));
        assert!(!cache.begin_fetch(soon), "unknown keys cause no load at the provider");
        let later = start + FETCH_INTERVAL;
        assert_eq!(cache.look_up(Some("2"), later), Lookup::NeedsFetch);
        fetch(&mut cache, Some(keys(&["2"])), later);
        assert!(is_found(&cache, "2", later) && !is_found(&cache, "1", later), "the set is replaced");
    }

    #[test]
    fn a_cached_key_is_found_while_keys_are_fetched() {
        let (mut cache, start) = (KeyCache::default(), Instant::now());
        fetch(&mut cache, Some(keys(&["1"])), start);
        let later = start + FETCH_INTERVAL;
        assert!(cache.begin_fetch(later) && !cache.begin_fetch(later), "one fetch at a time");
        assert!(is_found(&cache, "1", later));
        assert_eq!(cache.look_up(Some("2"), later), Lookup::NeedsFetch, "the fetch in progress may return it");
    }

    #[test]
    fn keys_are_stale_after_an_hour_and_not_used_after_a_day() {
        let (mut cache, start) = (KeyCache::default(), Instant::now());
        fetch(&mut cache, Some(keys(&["1"])), start);
        let is_stale_after = |age| match cache.look_up(Some("1"), start + age) {
            Lookup::Found { is_stale, .. } => Some(is_stale),
            Lookup::NeedsFetch | Lookup::Missing(_) => None,
        };
        let moment = Duration::from_millis(1);
        assert_eq!(is_stale_after(STALE_AGE - moment), Some(false));
        assert_eq!(is_stale_after(STALE_AGE), Some(true));
        assert_eq!(is_stale_after(AGE_MAX - moment), Some(true));
        assert_eq!(is_stale_after(AGE_MAX), None);
        fetch(&mut cache, None, start + AGE_MAX);
        assert_eq!(cache.look_up(Some("1"), start + AGE_MAX), Lookup::Missing(TokenError::NoKeys));
    }

    #[test]
    fn keys_stay_while_the_provider_cannot_be_reached_and_go_if_it_withdraws_them() {
        let (mut cache, start) = (KeyCache::default(), Instant::now());
        fetch(&mut cache, Some(keys(&["1"])), start);
        fetch(&mut cache, None, start + STALE_AGE);
        assert!(is_found(&cache, "1", start + STALE_AGE));
        let later = start + STALE_AGE + FETCH_INTERVAL;
        fetch(&mut cache, Some(keys(&[])), later);
        assert_eq!(cache.look_up(Some("1"), later), Lookup::Missing(TokenError::UnknownKey));
    }
}
