//! Limits of the agent's work.

use serde::{Deserialize, Serialize};

/// Limits of the agent's work. The process uses the defaults; simulations make them small, so that every boundary is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Entries in one ConfigMap of an inventory: an entry has at most a few hundred bytes, and a ConfigMap at most about a
    /// mebibyte.
    pub inventory_chunk_entries: usize,
    /// Objects in one page of a list.
    pub list_page: usize,
    /// Requests to the API server at the same time, of all passes together; watches and pings are not counted.
    pub requests_in_flight: usize,
    /// Passes at the same time. Most of so many only wait for a retry.
    pub passes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { inventory_chunk_entries: 1_000, list_page: 500, requests_in_flight: 128, passes: 256 }
    }
}
