//! Recoveries that are scheduled when a fault begins.

use sindri_world::engine::HostId;

/// End of a fault.
#[derive(Clone, Debug)]
pub(super) enum Recovery {
    /// Restarts a guest.
    Restart(String),
    /// Reconnects two hosts.
    Repair([HostId; 2]),
}
