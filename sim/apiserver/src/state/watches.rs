//! The open watches of one server.

use std::collections::BTreeMap;

use super::watch::Watch;
use crate::http::response::WatchId;

/// Open watches by their ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watches {
    open: BTreeMap<WatchId, Watch>,
    /// Number of watches opened so far; the newest has it as its id.
    opened: u64,
}

impl Watches {
    pub(crate) fn open(&mut self, watch: Watch) -> WatchId {
        self.opened += 1;
        let id = WatchId(self.opened);
        self.open.insert(id, watch);
        id
    }

    pub(crate) fn get(&self, id: WatchId) -> Option<&Watch> {
        self.open.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: WatchId) -> Option<&mut Watch> {
        self.open.get_mut(&id)
    }

    pub(crate) fn remove(&mut self, id: WatchId) {
        self.open.remove(&id);
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Ends every watch.
    pub(crate) fn close_all(&mut self) {
        self.open.values_mut().for_each(Watch::close);
    }

    /// Ends the watches of a resource that is no longer served.
    pub(crate) fn close_resource(&mut self, group: &str, plural: &str) {
        for watch in self.open.values_mut().filter(|watch| watch.scope.target.resource.is(group, plural)) {
            watch.close();
        }
    }
}
