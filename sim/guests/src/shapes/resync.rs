//! Modes of observing shapes and resources.

use std::time::Duration;

/// Interval of full passes.
pub const RESYNC: Duration = Duration::from_secs(30);

/// Occasions on which the controller observes shapes and resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResyncMode {
    /// Everything at the start, after each change of a shape, and periodically.
    Periodic,
    /// Everything at the start, then only shapes that change. Wrong on purpose: resources change too.
    AtStart,
    /// Only shapes that change. Wrong on purpose: changes while the controller is down are missed.
    EventsOnly,
}
