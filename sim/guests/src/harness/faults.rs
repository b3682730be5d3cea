//! What goes wrong: kills, cut networks, refused and unanswered requests; chosen one by one or by the seed.

use std::time::Duration;

use sindri_apiserver::Fault;
use sindri_world::engine::HostId;
use sindri_world::exploration::{FaultKind, RequestFault, RequestFaults};
use sindri_world::http_faults::{InjectionRule, RequestPattern};
use sindri_world::rng::SeededRng;
use sindri_world::trace;

use super::World;

/// How long a killed guest is down, in milliseconds.
const DOWN: (u64, u64) = (100, 20_000);
/// How long a partition lasts, in milliseconds.
const APART: (u64, u64) = (500, 40_000);
/// The time between two partitions, in milliseconds.
const BETWEEN: (u64, u64) = (1_000, 60_000);

#[derive(Clone, Debug)]
pub(super) enum Relief {
    Restart(String),
    Repair([HostId; 2]),
}

impl World {
    /// Ends the process of a guest at once, as SIGKILL does.
    pub fn kill(&mut self, guest: &str) {
        trace::record("world", &format!("~ kill {guest}"));
        let guest = self.guests.get_mut(guest).unwrap_or_else(|| panic!("there is no guest {guest:?}"));
        if !std::mem::replace(&mut guest.is_dead, true) {
            self.engine.kill(guest.host);
        }
    }

    /// Starts it again, with empty memory.
    pub fn restart(&mut self, guest: &str) {
        trace::record("world", &format!("~ restart {guest}"));
        let guest = self.guests.get_mut(guest).unwrap_or_else(|| panic!("there is no guest {guest:?}"));
        if std::mem::replace(&mut guest.is_dead, false) {
            self.engine.restart(guest.host);
        }
    }

    /// Whether a guest is dead.
    pub fn is_dead(&self, guest: &str) -> bool {
        self.guests.get(guest).is_some_and(|guest| guest.is_dead)
    }

    /// Makes requests of guests fail that have these words, so many times.
    pub fn fail(&mut self, api: &str, words: &str, fault: Fault, times: Option<u32>) {
        trace::record("world", &format!("~ fail {api} {words:?} {fault:?} {times:?}"));
        self.api(api).gate.add_rule(InjectionRule { requests: RequestPattern::parse(words), fault, times });
    }

    /// Ends what [`World::fail`] began.
    pub fn heal(&mut self, api: &str) {
        trace::record("world", &format!("~ heal {api}"));
        self.api(api).gate.clear_rules();
    }

    /// Makes an API server forget its history, so that a watch that is behind ends and has to begin anew.
    pub fn forget_history(&mut self, api: &str) {
        trace::record("world", &format!("~ {api} forgets its history"));
        let (server, host) = (self.api(api).server.clone(), self.api(api).host);
        server.with(sindri_apiserver::ApiServer::compact);
        self.engine.wake(host);
    }

    /// Decides about the request of this number, counted from 1, that guests make to an API server. A death is that of
    /// every guest: the API server does not know whose request it was.
    pub fn inject_at(&mut self, api: &str, number: usize, choice: RequestFault) {
        self.api(api).gate.inject_at(number, choice);
    }

    /// Lets the seed choose faults of these kinds from here on.
    pub fn begin_faults(&mut self, kinds: &[FaultKind]) {
        trace::record("world", &format!("~ faults begin {kinds:?}"));
        for (name, api) in &self.apis {
            api.gate.set_exploration(Some(RequestFaults::new(kinds, self.seed, name)));
        }
        if kinds.contains(&FaultKind::Partition) {
            self.partitions = Some(SeededRng::new(self.seed, "partitions"));
            self.plan_partition();
        }
    }

    /// Ends every fault: what is dead starts, what is cut is mended, every API server is well.
    pub fn end_faults(&mut self) {
        trace::record("world", "~ every fault ends");
        self.partitions = None;
        self.relief.clear();
        for api in self.apis.values() {
            api.gate.set_exploration(None);
            api.gate.clear_rules();
            api.gate.take_client_kill();
        }
        for [one, other] in std::mem::take(&mut self.cut) {
            self.engine.repair(one, other);
        }
        let dead: Vec<String> =
            self.guests.iter().filter(|(_, guest)| guest.is_dead).map(|(name, _)| name.clone()).collect();
        dead.iter().for_each(|name| self.restart(name));
    }

    pub(super) fn next_fault(&self) -> Option<Duration> {
        let relief = self.relief.iter().map(|(due, _)| *due).min();
        relief.into_iter().chain(self.partitions.as_ref().map(|_| self.partition_due)).min()
    }

    pub(super) fn kill_whom_the_gates_chose(&mut self) {
        let chosen = self.apis.values().filter(|api| api.gate.take_client_kill()).count();
        if chosen == 0 {
            return;
        }
        let alive: Vec<String> =
            self.guests.iter().filter(|(_, guest)| !guest.is_dead).map(|(name, _)| name.clone()).collect();
        for name in alive {
            self.kill(&name);
            let down = Duration::from_millis(self.chance.between(DOWN.0, DOWN.1));
            self.relief.push((self.now() + down, Relief::Restart(name)));
        }
    }

    fn plan_partition(&mut self) {
        if let Some(dice) = &mut self.partitions {
            self.partition_due = self.engine.now() + Duration::from_millis(dice.between(BETWEEN.0, BETWEEN.1));
        }
    }

    /// Cuts a guest off from an API server when it is time to.
    pub(super) fn strike(&mut self) {
        if self.partition_due > self.now() || self.guests.is_empty() {
            return;
        }
        let Some(dice) = &mut self.partitions else { return };
        let (guest, api) = (dice.next_u64(), dice.next_u64());
        let lasts = Duration::from_millis(dice.between(APART.0, APART.1));
        let guests: Vec<HostId> = self.guests.values().map(|guest| guest.host).collect();
        let apis: Vec<HostId> = self.apis.values().map(|api| api.host).collect();
        let pair = [guests[guest as usize % guests.len()], apis[api as usize % apis.len()]];
        if !self.cut.contains(&pair) {
            trace::record("world", &format!("~ partition {pair:?}"));
            self.engine.partition(pair[0], pair[1]);
            self.cut.push(pair);
            self.relief.push((self.now() + lasts, Relief::Repair(pair)));
        }
        self.plan_partition();
    }

    pub(super) fn give_relief(&mut self) {
        let now = self.now();
        let (due, later) = std::mem::take(&mut self.relief).into_iter().partition(|(due, _)| *due <= now);
        self.relief = later;
        let due: Vec<(Duration, Relief)> = due;
        for (_, relief) in due {
            match relief {
                Relief::Restart(name) => self.restart(&name),
                Relief::Repair(pair) => {
                    trace::record("world", &format!("~ repair {pair:?}"));
                    self.engine.repair(pair[0], pair[1]);
                    self.cut.retain(|cut| *cut != pair);
                }
            }
        }
    }
}
