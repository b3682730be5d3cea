//! Faults: kills, partitions, rejected requests and lost responses; chosen by the test or by the seed.

use std::time::Duration;

use sindri_apiserver::Fault;
use sindri_world::engine::HostId;
use sindri_world::exploration::{FaultKind, RequestFault, RequestFaults};
use sindri_world::http_faults::{InjectedFault, InjectionRule, RequestPattern};
use sindri_world::rng::SeededRng;
use sindri_world::trace;

use super::recovery::Recovery;
use super::world::World;

/// Shortest and longest downtime of a killed guest, in milliseconds.
const DOWNTIME_MS: (u64, u64) = (100, 20_000);
/// Shortest and longest partition, in milliseconds.
const PARTITION_MS: (u64, u64) = (500, 40_000);
/// Shortest and longest time between two partitions, in milliseconds.
const BETWEEN_PARTITIONS_MS: (u64, u64) = (1_000, 60_000);

impl World {
    /// Kills the process of a guest like SIGKILL: nothing is cleaned up.
    pub fn kill(&mut self, guest: &str) {
        trace::record("world", &format!("~ kill {guest}"));
        let guest = self.guests.get_mut(guest).unwrap_or_else(|| panic!("there is no guest {guest:?}"));
        if !std::mem::replace(&mut guest.is_dead, true) {
            self.engine.kill(guest.host);
        }
    }

    /// Starts a killed guest again, with empty memory.
    pub fn restart(&mut self, guest: &str) {
        trace::record("world", &format!("~ restart {guest}"));
        let guest = self.guests.get_mut(guest).unwrap_or_else(|| panic!("there is no guest {guest:?}"));
        if std::mem::replace(&mut guest.is_dead, false) {
            self.engine.restart(guest.host);
        }
    }

    /// Returns true if a guest was killed and not restarted.
    pub fn is_dead(&self, guest: &str) -> bool {
        self.guests.get(guest).is_some_and(|guest| guest.is_dead)
    }

    /// Makes requests of guests that match a pattern fail, at most `times` of them.
    pub fn fail_requests(&mut self, api: &str, pattern: &str, fault: Fault, times: Option<u32>) {
        trace::record("world", &format!("~ fail {api} {pattern:?} {fault:?} {times:?}"));
        let (requests, fault) = (RequestPattern::parse(pattern), InjectedFault::Server(fault));
        self.api(api).injector.add_rule(InjectionRule { requests, fault, times });
    }

    /// Ends the faults of [`World::fail_requests`].
    pub fn stop_failing(&mut self, api: &str) {
        trace::record("world", &format!("~ heal {api}"));
        self.api(api).injector.clear_rules();
    }

    /// Compacts the history of an API server, so that watches that are behind fail with 410 and must list again.
    pub fn compact_history(&mut self, api: &str) {
        trace::record("world", &format!("~ compact the history of {api}"));
        let (server, host) = (self.api(api).server.clone(), self.api(api).host);
        server.with(sindri_apiserver::ApiServer::compact);
        self.engine.wake(host);
    }

    /// Injects a fault at one request of guests to an API server; `number` counts from 1. A kill affects every guest,
    /// because the API server does not know which one made the request.
    pub fn inject_at(&mut self, api: &str, number: usize, choice: RequestFault) {
        self.api(api).injector.inject_at(number, choice);
    }

    /// Makes the seed choose faults of these kinds from now on.
    pub fn begin_faults(&mut self, kinds: &[FaultKind]) {
        trace::record("world", &format!("~ faults begin {kinds:?}"));
        for (name, api) in &self.apis {
            api.injector.set_exploration(Some(RequestFaults::new(kinds, self.seed, name)));
        }
        if kinds.contains(&FaultKind::Partition) {
            self.partition_rng = Some(SeededRng::new(self.seed, "partitions"));
            self.schedule_partition();
        }
    }

    /// Ends every fault: killed guests restart, partitions are repaired, API servers reject no more requests.
    pub fn end_faults(&mut self) {
        trace::record("world", "~ every fault ends");
        self.partition_rng = None;
        self.recoveries.clear();
        for api in self.apis.values() {
            api.injector.set_exploration(None);
            api.injector.clear_rules();
            api.injector.take_client_kill();
        }
        for [one, other] in std::mem::take(&mut self.partitioned) {
            self.engine.repair(one, other);
        }
        let dead: Vec<String> =
            self.guests.iter().filter(|(_, guest)| guest.is_dead).map(|(name, _)| name.clone()).collect();
        dead.iter().for_each(|name| self.restart(name));
    }

    /// Returns the time of the next partition or recovery.
    pub(super) fn next_fault(&self) -> Option<Duration> {
        let recovery = self.recoveries.iter().map(|(due, _)| *due).min();
        recovery.into_iter().chain(self.partition_rng.as_ref().map(|_| self.partition_due)).min()
    }

    /// Kills every guest if an API server has chosen a kill.
    pub(super) fn kill_chosen_guests(&mut self) {
        let chosen = self.apis.values().filter(|api| api.injector.take_client_kill()).count();
        if chosen == 0 {
            return;
        }
        let alive: Vec<String> =
            self.guests.iter().filter(|(_, guest)| !guest.is_dead).map(|(name, _)| name.clone()).collect();
        for name in alive {
            self.kill(&name);
            let downtime = Duration::from_millis(self.downtime_rng.between(DOWNTIME_MS.0, DOWNTIME_MS.1));
            self.recoveries.push((self.now() + downtime, Recovery::Restart(name)));
        }
    }

    fn schedule_partition(&mut self) {
        if let Some(rng) = &mut self.partition_rng {
            self.partition_due = self.engine.now()
                + Duration::from_millis(rng.between(BETWEEN_PARTITIONS_MS.0, BETWEEN_PARTITIONS_MS.1));
        }
    }

    /// Partitions a guest from an API server when it is due.
    pub(super) fn begin_partition(&mut self) {
        if self.partition_due > self.now() || self.guests.is_empty() {
            return;
        }
        let Some(rng) = &mut self.partition_rng else { return };
        let (guest, api) = (rng.next_u64(), rng.next_u64());
        let duration = Duration::from_millis(rng.between(PARTITION_MS.0, PARTITION_MS.1));
        let guests: Vec<HostId> = self.guests.values().map(|guest| guest.host).collect();
        let apis: Vec<HostId> = self.apis.values().map(|api| api.host).collect();
        let pair = [guests[guest as usize % guests.len()], apis[api as usize % apis.len()]];
        if !self.partitioned.contains(&pair) {
            trace::record("world", &format!("~ partition {pair:?}"));
            self.engine.partition(pair[0], pair[1]);
            self.partitioned.push(pair);
            self.recoveries.push((self.now() + duration, Recovery::Repair(pair)));
        }
        self.schedule_partition();
    }

    /// Runs the recoveries that are due.
    pub(super) fn run_recoveries(&mut self) {
        let now = self.now();
        let (due, later) = std::mem::take(&mut self.recoveries).into_iter().partition(|(due, _)| *due <= now);
        self.recoveries = later;
        let due: Vec<(Duration, Recovery)> = due;
        for (_, recovery) in due {
            match recovery {
                Recovery::Restart(name) => self.restart(&name),
                Recovery::Repair(pair) => {
                    trace::record("world", &format!("~ repair {pair:?}"));
                    self.engine.repair(pair[0], pair[1]);
                    self.partitioned.retain(|other| *other != pair);
                }
            }
        }
    }
}
