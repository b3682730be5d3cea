//! The objects of a new server, as a real one has them: default roles and their bindings, priority classes, API services, flow
//! schemas, the Service of the API server, and what the controllers of a control plane create at once.
//!
//! Most are read from a recording. Servers of one process that start in the same second share them, because a simulation
//! starts thousands of servers.

mod recorded;
mod service;

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use crate::controllers::role_aggregation::aggregate_roles;
use crate::object::fields::{format_timestamp, metadata};
use crate::state::delays::ControllerDelays;
use crate::state::server_state::ServerState;
use crate::storage::store::Store;

/// Seed of the UIDs of these objects, which all servers share.
const UIDS_SEED: u64 = 0x626f_6f74;

/// Initial store of the last server, with the second of its start.
static LAST: Mutex<Option<(String, Store)>> = Mutex::new(None);

/// Returns a store with the objects of a new control plane.
pub(crate) fn initial_store(now: Timestamp) -> Store {
    let second = format_timestamp(now);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, store)) = last.as_ref().filter(|(of, _)| *of == second) {
        return store.clone();
    }
    let store = build_store(now);
    *last = Some((second, store.clone()));
    store
}

fn build_store(now: Timestamp) -> Store {
    let mut state = ServerState::new(UIDS_SEED, ControllerDelays::default());
    for (key, mut object) in recorded::objects(now) {
        metadata(&mut object).insert("uid".to_owned(), state.ids.uid().into());
        state.store.put(now, key, object);
    }
    service::create_service(&mut state, now);
    aggregate_roles(&mut state, now);
    state.store
}

/// Removes what the controllers of a control plane have created, so that the objects of the API server alone remain.
pub(crate) fn remove_objects_of_controllers(store: &mut Store) {
    store.forget_all("", "serviceaccounts");
    store.rewrite_all("rbac.authorization.k8s.io", "clusterroles", recorded::clear_aggregated_rules);
}
