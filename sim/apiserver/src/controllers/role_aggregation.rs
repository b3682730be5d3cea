//! Aggregation of ClusterRoles: a role with an aggregation rule gets the rules of the roles that it selects.

use jiff::Timestamp;
use serde_json::{Value, json};
use sindri_merge::{Writer, apply};

use crate::object::fields::{array_at, format_timestamp, name};
use crate::object::key::StoredKey;
use crate::object::label_selectors::matches_selector;
use crate::state::server_state::ServerState;
use crate::storage::journal::{Attribution, Verb};
use crate::storage::store::Store;
use crate::writes::commit::commit;

const GROUP: &str = "rbac.authorization.k8s.io";
const API_VERSION: &str = "rbac.authorization.k8s.io/v1";
const CONTROLLER: &str = "clusterrole-aggregation-controller";
/// Maximum number of rounds: an aggregated role may be part of another one.
const ROUNDS_MAX: usize = 10;

/// Updates the rules of every ClusterRole that has an aggregation rule.
pub(crate) fn aggregate_roles(state: &mut ServerState, now: Timestamp) {
    for _ in 0..ROUNDS_MAX {
        let revision = state.store.revision();
        for (key, rules) in find_outdated(&state.store) {
            apply_rules(state, now, &key, rules);
        }
        if state.store.revision() == revision {
            return;
        }
    }
}

/// Returns the aggregated roles whose rules differ from those of their parts, with the correct rules.
fn find_outdated(store: &Store) -> Vec<(StoredKey, Vec<Value>)> {
    let roles = || store.collection(GROUP, "clusterroles").into_iter().flat_map(|collection| collection.values());
    let mut outdated = Vec::new();
    for entry in roles() {
        let selectors = array_at(&entry.object, "/aggregationRule/clusterRoleSelectors");
        if selectors.is_empty() {
            continue;
        }
        let mut rules: Vec<Value> = Vec::new();
        for selector in selectors {
            let parts = roles().filter(|part| part.key.name != entry.key.name);
            for part in parts.filter(|part| matches_selector(Some(selector), &part.object)) {
                let new = array_at(&part.object, "/rules").iter().filter(|rule| !rules.contains(rule)).cloned();
                let new: Vec<Value> = new.collect();
                rules.extend(new);
            }
        }
        if rules != array_at(&entry.object, "/rules") {
            outdated.push((StoredKey::clone(&entry.key), rules));
        }
    }
    outdated
}

/// Applies the rules of a role as the field manager of the controller. Rules of other managers stay, so that nothing may
/// change; then nothing is written, since each write leads to another aggregation.
fn apply_rules(state: &mut ServerState, now: Timestamp, key: &StoredKey, rules: Vec<Value>) {
    let (Some(live), Some(target)) = (state.store.find_key(key).cloned(), state.registry.preferred(GROUP, &key.plural))
    else {
        return;
    };
    let mut applied = json!({"apiVersion": API_VERSION, "kind": key.kind, "metadata": {"name": name(&live)}});
    if !rules.is_empty() {
        applied["rules"] = json!(rules);
    }
    let timestamp = format_timestamp(now);
    let writer = Writer {
        manager: CONTROLLER,
        api_version: API_VERSION,
        subresource: "",
        now: &timestamp,
        blank: &target.version.blank,
    };
    // Tracking cannot fail here: objects with malformed managedFields are rejected before they are stored.
    if let Ok(mut object) = apply(&target.version.shape, Some(&live), applied, &writer, true) {
        if object.get("rules").is_none() {
            object["rules"] = Value::Null;
        }
        if object == *live {
            return;
        }
        commit(state, now, &Attribution::controller(CONTROLLER, Verb::Apply), key.clone(), object);
    }
}
