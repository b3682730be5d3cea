//! Room for new connections: at the limit the connection that has been open longest without an accepted key is closed.
//!
//! So clients without a key cannot shut out probes and agents, however many connections they open. Some places are never taken
//! by connections with a key, so that there is room for probes of a broker whose fleet is as large as the limit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::api::http::connection_info::KeyAcceptedFlag;

/// One place of so many is never taken by a connection with a key.
const PLACES_PER_FREE_ONE: usize = 64;

/// Places of connections.
#[derive(Clone, Debug)]
pub(super) struct Room {
    places_max: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// Connections that may be closed for others, oldest first.
    open: BTreeMap<u64, Connection>,
    /// Connections with a key, which are not closed.
    kept: BTreeSet<u64>,
}

#[derive(Debug)]
struct Connection {
    key_accepted: KeyAcceptedFlag,
    close: CancellationToken,
}

/// Place of a connection until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    room: Room,
    number: u64,
    /// Set when a key was accepted on the connection.
    pub key_accepted: KeyAcceptedFlag,
    /// Cancelled when the connection has to make room.
    pub close: CancellationToken,
}

impl Room {
    pub(super) fn new(places_max: usize) -> Self {
        Self { places_max, state: Arc::default() }
    }

    /// Returns a place for a new connection, for which another one may have to end. `key_accepted` is the flag of the
    /// connection.
    pub(super) fn enter(&self, key_accepted: KeyAcceptedFlag) -> Place {
        let close = CancellationToken::new();
        let mut state = self.lock();
        if state.is_full(self.places_max) {
            state.make_room(self.places_max.saturating_sub(self.places_max.div_ceil(PLACES_PER_FREE_ONE)));
        }
        let number = state.next;
        state.next += 1;
        state.open.insert(number, Connection { key_accepted: key_accepted.clone(), close: close.clone() });
        drop(state);
        Place { room: self.clone(), number, key_accepted, close }
    }

    /// Returns true if the next connection needs the place of another one.
    pub(super) fn is_full(&self) -> bool {
        self.lock().is_full(self.places_max)
    }

    /// Returns true if there is no connection.
    pub(super) fn is_empty(&self) -> bool {
        let state = self.lock();
        state.open.is_empty() && state.kept.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No operation leaves the state half changed, so a poisoned lock is safe to use.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_full(&self, places_max: usize) -> bool {
        self.open.len() + self.kept.len() >= places_max
    }

    /// Closes the oldest connection without an accepted key. At most `kept_max` connections are kept for their keys.
    fn make_room(&mut self, kept_max: usize) {
        while let Some((number, connection)) = self.open.pop_first() {
            if connection.key_accepted.is_set() && self.kept.len() < kept_max {
                self.kept.insert(number);
            } else {
                connection.close.cancel();
                return;
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.room.lock();
        state.open.remove(&self.number);
        state.kept.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(room: &Room) -> Place {
        room.enter(KeyAcceptedFlag::default())
    }

    fn closed(places: &[Place]) -> Vec<bool> {
        places.iter().map(|place| place.close.is_cancelled()).collect()
    }

    fn count(room: &Room) -> usize {
        let state = room.lock();
        state.open.len() + state.kept.len()
    }

    #[test]
    fn the_oldest_connection_without_a_key_makes_room() {
        let room = Room::new(3);
        let mut places = vec![enter(&room), enter(&room), enter(&room)];
        places[0].key_accepted.set();
        places.push(enter(&room));
        assert_eq!(closed(&places), [false, true, false, false]);
        drop(places.remove(1));
        places.push(enter(&room));
        assert_eq!(closed(&places), [false, true, false, false], "the third is the oldest now");
        assert_eq!(count(&room), 3);
    }

    #[test]
    fn connections_with_keys_leave_room_for_probes() {
        let room = Room::new(128);
        let agents: Vec<Place> = std::iter::repeat_with(|| enter(&room)).take(128).collect();
        agents.iter().for_each(|agent| agent.key_accepted.set());
        let probes = [enter(&room), enter(&room), enter(&room)];
        assert_eq!(closed(&agents).iter().filter(|closed| **closed).count(), 2, "two places");
        assert_eq!(closed(&probes), [true, false, false], "probes have these places from then on");
        drop((agents, probes));
        assert_eq!(count(&room), 0);
    }
}
