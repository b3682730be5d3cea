//! Source of cluster IPs and node ports for Services: the next ones that no stored Service has.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::object::fields::array_at;
use crate::storage::store::Store;

/// First node port.
pub(super) const FIRST_NODE_PORT: u32 = 30_000;
/// Number of node ports.
pub(super) const NODE_PORTS: u32 = 2_768;
/// Number of node ports at the start of the range that are given only on request.
const STATIC_NODE_PORTS: u32 = 86;
/// Number of addresses in the range 10.96.0.0/16.
const ADDRESSES: u32 = 1 << 16;
/// Number of addresses at the start of the range that are given only on request.
const STATIC_ADDRESSES: u32 = 256;

/// Source of cluster IPs and node ports.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServiceAllocator {
    /// Number of cluster IPs given so far.
    addresses: u32,
    /// Number of node ports given so far.
    node_ports: u32,
}

impl ServiceAllocator {
    /// Returns an allocator for a dry run, with an address and ports that are far from those of stored Services.
    pub(crate) fn for_dry_run() -> Self {
        Self { addresses: 60_000, node_ports: 2_000 }
    }

    /// Returns the next cluster IP that no Service has.
    pub(super) fn next_address(&mut self, store: &Store) -> Value {
        let taken: BTreeSet<&str> = services(store)
            .flat_map(|service| array_at(service, "/spec/clusterIPs"))
            .filter_map(Value::as_str)
            .collect();
        // The last address of the range is the broadcast address.
        let count = ADDRESSES - STATIC_ADDRESSES - 1;
        let mut address = String::new();
        for _ in 0..count {
            let [_, _, middle, low] = (STATIC_ADDRESSES + self.addresses % count).to_be_bytes();
            self.addresses += 1;
            address = format!("10.96.{middle}.{low}");
            if !taken.contains(address.as_str()) {
                break;
            }
        }
        json!(address)
    }

    /// Returns the next node port that no Service has.
    pub(super) fn next_node_port(&mut self, store: &Store) -> Value {
        let taken: BTreeSet<u64> = services(store).flat_map(node_ports).collect();
        let count = NODE_PORTS - STATIC_NODE_PORTS;
        let mut port = FIRST_NODE_PORT;
        for _ in 0..count {
            port = FIRST_NODE_PORT + STATIC_NODE_PORTS + self.node_ports % count;
            self.node_ports += 1;
            if !taken.contains(&u64::from(port)) {
                break;
            }
        }
        json!(port)
    }
}

fn services(store: &Store) -> impl Iterator<Item = &Value> {
    let collection = store.collection("", "services").into_iter().flat_map(|collection| collection.values());
    collection.map(|entry| &***entry.object)
}

fn node_ports(service: &Value) -> impl Iterator<Item = u64> + '_ {
    let ports = array_at(service, "/spec/ports").iter().filter_map(|port| port.get("nodePort"));
    ports.chain(service.pointer("/spec/healthCheckNodePort")).filter_map(Value::as_u64)
}
