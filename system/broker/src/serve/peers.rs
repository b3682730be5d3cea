//! Limit on the connections of one peer, so that one client does not take all of them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::throttle::ThrottleSource;

/// Open connections by peer. An IPv6 network counts as one peer.
#[derive(Clone, Debug, Default)]
pub(super) struct PeerConnections(Arc<Mutex<BTreeMap<ThrottleSource, usize>>>);

/// A connection that counts until it is dropped. Without an address (simulation) it does not count.
pub(super) struct CountedConnection {
    peers: PeerConnections,
    peer: Option<ThrottleSource>,
}

impl PeerConnections {
    /// Counts a connection; `None` if its peer has `max` connections already.
    pub(super) fn open(&self, peer: Option<IpAddr>, max: usize) -> Option<CountedConnection> {
        let peer = peer.map(ThrottleSource::from_address);
        if let Some(peer) = peer {
            let mut open = self.lock();
            let count = open.entry(peer).or_default();
            if *count >= max {
                return None;
            }
            *count += 1;
        }
        Some(CountedConnection { peers: self.clone(), peer })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ThrottleSource, usize>> {
        // No operation leaves the state half changed, so a poisoned lock is safe to use.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let Some(peer) = self.peer else { return };
        let mut open = self.peers.lock();
        if let Some(count) = open.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                open.remove(&peer);
            }
        }
    }
}
