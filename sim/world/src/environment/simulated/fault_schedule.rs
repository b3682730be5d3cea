//! Faults of an exploration that are due, and the recoveries from them.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::exploration::{FaultKind, HostFault, HostFaults, ResponseFault, ResponseFaults};
use crate::rng::SeededRng;

/// Time for which a host stays down that is killed at a chosen event.
const DOWN_AT_EVENT: Duration = Duration::from_millis(500);

/// End of a fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recovery {
    /// Starts a killed host again.
    Restart(String),
    /// Repairs the network between two hosts.
    Repair([String; 2]),
}

/// Faults that are chosen by the seed, and recoveries with their times.
pub struct FaultSchedule {
    hosts: Option<HostFaults>,
    responses: Option<ResponseFaults>,
    recoveries: BTreeSet<(Duration, Recovery)>,
    downtimes: SeededRng,
}

impl FaultSchedule {
    /// Creates a schedule without faults.
    pub fn new(seed: u64) -> Self {
        let downtimes = SeededRng::new(seed, "relief");
        Self { hosts: None, responses: None, recoveries: BTreeSet::new(), downtimes }
    }

    /// Starts the exploration.
    pub fn begin(&mut self, kinds: &[FaultKind], seed: u64, agents: &[String]) {
        self.hosts = Some(HostFaults::new(kinds, seed, agents));
        self.responses = Some(ResponseFaults::new(kinds, seed));
    }

    /// Ends the exploration and forgets the recoveries; the caller ends all faults itself.
    pub fn end(&mut self) {
        self.hosts = None;
        self.responses = None;
        self.recoveries.clear();
    }

    /// Returns the time of the next recovery or fault of a host.
    pub fn next_due(&self) -> Option<Duration> {
        let recovery = self.recoveries.first().map(|(due, _)| *due);
        recovery.into_iter().chain(self.hosts.as_ref().and_then(HostFaults::next_due)).min()
    }

    /// Chooses the fault of a response to an agent.
    pub fn choose_response_fault(&mut self) -> Option<ResponseFault> {
        self.responses.as_mut().and_then(ResponseFaults::choose)
    }

    /// Returns the fault of a host or link that is due.
    pub fn take_host_fault(&mut self, now: Duration) -> Option<HostFault> {
        let faults = self.hosts.as_mut()?;
        faults.next_due().filter(|due| *due <= now)?;
        Some(faults.choose(now))
    }

    /// Returns a recovery that is due, earliest first.
    pub fn take_recovery(&mut self, now: Duration) -> Option<Recovery> {
        let is_due = self.recoveries.first().is_some_and(|(due, _)| *due <= now);
        if is_due { self.recoveries.pop_first().map(|(_, recovery)| recovery) } else { None }
    }

    /// Plans a recovery.
    pub fn recover_at(&mut self, due: Duration, recovery: Recovery) {
        self.recoveries.insert((due, recovery));
    }

    /// Plans the restart of a host that an exploration killed, after a downtime that the seed chooses.
    pub fn restart_later(&mut self, now: Duration, host: String) {
        let down = Duration::from_millis(self.downtimes.between(100, 45_000));
        self.recover_at(now + down, Recovery::Restart(host));
    }

    /// Plans the restart of a host that was killed at a chosen event.
    pub fn restart_soon(&mut self, now: Duration, host: String) {
        self.recover_at(now + DOWN_AT_EVENT, Recovery::Restart(host));
    }
}
