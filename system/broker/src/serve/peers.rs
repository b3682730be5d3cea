//! Limit on the connections of one peer, so that one client does not take all of them.
//!
//! Many clients may share an address. At the limit a new connection takes the place of the oldest one on which no key was
//! accepted, so that clients without a key do not shut out the agents behind the same address.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::room::{Place, Room};
use crate::api::http::connection_info::KeyAcceptedFlag;
use crate::throttle::ThrottleSource;

/// Open connections by peer. An IPv6 network counts as one peer.
#[derive(Clone, Debug, Default)]
pub(super) struct PeerConnections(Arc<Mutex<BTreeMap<ThrottleSource, Room>>>);

/// Place of a connection among those of its peer, until it is dropped. Without an address (simulation) there is none.
pub(super) struct PeerPlace {
    peers: PeerConnections,
    place: Option<(ThrottleSource, Place)>,
}

impl PeerConnections {
    /// Returns a place for a connection; its peer has `max` of them.
    pub(super) fn enter(&self, peer: Option<IpAddr>, max: usize, key_accepted: KeyAcceptedFlag) -> PeerPlace {
        let place = peer.map(ThrottleSource::from_address).map(|peer| {
            let place = self.lock().entry(peer).or_insert_with(|| Room::new(max)).enter(key_accepted);
            (peer, place)
        });
        PeerPlace { peers: self.clone(), place }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ThrottleSource, Room>> {
        // No operation leaves the state half changed, so a poisoned lock is safe to use.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PeerPlace {
    /// Returns the token that is cancelled when the connection has to make room.
    pub(super) fn close(&self) -> CancellationToken {
        self.place.as_ref().map(|(_, place)| place.close.clone()).unwrap_or_default()
    }
}

impl Drop for PeerPlace {
    fn drop(&mut self) {
        let Some((peer, place)) = self.place.take() else { return };
        let mut peers = self.peers.lock();
        drop(place);
        if peers.get(&peer).is_some_and(Room::is_empty) {
            peers.remove(&peer);
        }
    }
}
