//! Source of cluster IPs and node ports for Services.

use serde_json::{Value, json};

/// First node port.
pub(super) const FIRST_NODE_PORT: u32 = 30_000;

/// Number of node ports.
pub(super) const NODE_PORTS: u32 = 2_768;

/// Source of cluster IPs and node ports.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServiceAllocator {
    /// Number of cluster IPs given so far.
    addresses: u32,
    /// Number of node ports given so far.
    node_ports: u32,
}

impl ServiceAllocator {
    /// Returns an allocator for a dry run, with an address and ports that no stored Service gets.
    pub(crate) fn for_dry_run() -> Self {
        Self { addresses: 60_000, node_ports: 2_000 }
    }

    /// Returns the next cluster IP.
    pub(super) fn next_address(&mut self) -> Value {
        self.addresses += 1;
        let [_, high, middle, low] = self.addresses.to_be_bytes();
        json!(format!("10.{}.{middle}.{low}", 96_u8.saturating_add(high)))
    }

    /// Returns the next node port.
    pub(super) fn next_node_port(&mut self) -> Value {
        self.node_ports += 1;
        json!(FIRST_NODE_PORT + 1 + self.node_ports % (NODE_PORTS - 1))
    }
}
