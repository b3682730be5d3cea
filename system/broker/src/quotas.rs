//! Quotas of generators: limits, and what each generator has used of them.
//!
//! Usage is read from the store and then counted in memory. Before a request is rejected it is read again, so a rejection
//! is never based on old numbers. Requests that run at the same time, or on several brokers, may exceed a quota a little.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sindri_model::GeneratorId;
use tokio::time::Instant;

use crate::store::GeneratorUsage;

/// Limits of each generator. None: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Stacks that are not deleted.
    pub stacks: Option<u64>,
    /// Bytes of all stored revisions.
    pub revision_bytes: Option<u64>,
    /// Submissions of revisions in a minute.
    pub submissions_per_minute: Option<u32>,
    /// Requests in a minute, of each agent too.
    pub requests_per_minute: Option<u32>,
}

/// A limit that a request would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExceededQuota {
    Stacks(u64),
    RevisionBytes(u64),
}

impl Quotas {
    /// Returns true if the usage of the store is limited.
    pub(crate) fn limits_usage(&self) -> bool {
        self.stacks.is_some() || self.revision_bytes.is_some()
    }

    /// Returns the limit that a generator exceeds with this usage. One whose usage does not grow exceeds none.
    fn check(&self, usage: GeneratorUsage, added: GeneratorUsage) -> Result<(), ExceededQuota> {
        let exceeds = |limit: Option<u64>, used: u64, added: u64| {
            limit.filter(|limit| added > 0 && used.saturating_add(added) > *limit)
        };
        if let Some(limit) = exceeds(self.stacks, usage.stacks, added.stacks) {
            return Err(ExceededQuota::Stacks(limit));
        }
        match exceeds(self.revision_bytes, usage.revision_bytes, added.revision_bytes) {
            Some(limit) => Err(ExceededQuota::RevisionBytes(limit)),
            None => Ok(()),
        }
    }
}

/// Time after which usage is read from the store again.
const USAGE_TIME: Duration = Duration::from_secs(60);
/// Limit on the generators in memory. When it is reached they are forgotten.
const GENERATORS_MAX: usize = 10_000;

/// Usage by generator, and the time at which it was read.
#[derive(Debug, Default)]
pub(crate) struct QuotaUsage(Mutex<BTreeMap<GeneratorId, (Instant, GeneratorUsage)>>);

impl QuotaUsage {
    /// Adds to the usage of a generator. Fails with `None` if the usage must be read from the store first.
    pub(crate) fn add(
        &self,
        generator: GeneratorId,
        added: GeneratorUsage,
        quotas: &Quotas,
        now: Instant,
    ) -> Result<(), Option<ExceededQuota>> {
        let mut generators = self.lock();
        let (read_at, usage) = generators.get_mut(&generator).ok_or(None)?;
        if now.duration_since(*read_at) >= USAGE_TIME {
            return Err(None);
        }
        quotas.check(*usage, added).map_err(Some)?;
        usage.stacks = usage.stacks.saturating_add(added.stacks);
        usage.revision_bytes = usage.revision_bytes.saturating_add(added.revision_bytes);
        Ok(())
    }

    /// Sets the usage of a generator as the store has it.
    pub(crate) fn set(&self, generator: GeneratorId, usage: GeneratorUsage, now: Instant) {
        let mut generators = self.lock();
        if generators.len() >= GENERATORS_MAX {
            generators.clear();
        }
        generators.insert(generator, (now, usage));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<GeneratorId, (Instant, GeneratorUsage)>> {
        // No operation leaves the map half changed, so a poisoned lock is safe to use.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sindri_model::Entropy;

    fn generator(byte: u8) -> GeneratorId {
        GeneratorId::generate(&Entropy::new(move |bytes| bytes.fill(byte)))
    }

    fn used(stacks: u64, revision_bytes: u64) -> GeneratorUsage {
        GeneratorUsage { stacks, revision_bytes }
    }

    #[test]
    fn usage_is_counted_until_it_is_read_again() {
        let (usage, start) = (QuotaUsage::default(), Instant::now());
        let quotas = Quotas { stacks: Some(3), revision_bytes: Some(100), ..Quotas::default() };
        assert_eq!(usage.add(generator(1), used(1, 0), &quotas, start), Err(None), "not read yet");
        usage.set(generator(1), used(2, 90), start);
        assert_eq!(usage.add(generator(1), used(1, 0), &quotas, start), Ok(()));
        assert_eq!(usage.add(generator(1), used(1, 0), &quotas, start), Err(Some(ExceededQuota::Stacks(3))));
        assert_eq!(usage.add(generator(1), used(0, 10), &quotas, start), Ok(()));
        assert_eq!(usage.add(generator(1), used(0, 1), &quotas, start), Err(Some(ExceededQuota::RevisionBytes(100))));
        assert_eq!(usage.add(generator(2), used(0, 1), &quotas, start), Err(None), "another generator");
        assert_eq!(usage.add(generator(1), used(0, 0), &quotas, start + USAGE_TIME), Err(None), "old");
    }

    #[test]
    fn a_lower_quota_rejects_only_what_adds_to_the_usage() {
        let quotas = Quotas { stacks: Some(1), revision_bytes: Some(1), ..Quotas::default() };
        assert_eq!(quotas.check(used(5, 5), used(0, 0)), Ok(()));
        assert_eq!(quotas.check(used(5, 0), used(0, 1)), Ok(()));
        assert_eq!(quotas.check(used(5, 5), used(0, 1)), Err(ExceededQuota::RevisionBytes(1)));
        assert!(!Quotas { submissions_per_minute: Some(1), ..Quotas::default() }.limits_usage());
    }
}
