//! The owners that an object names in its owner references.

use serde_json::Value;

use crate::object::fields::{array_at, group_version, string_at, uid};
use crate::object::key::StoredKey;
use crate::state::server_state::ServerState;

/// Returns the owners that an object references.
pub(crate) fn find_owners(state: &ServerState, key: &StoredKey, object: &Value) -> Vec<Owner> {
    array_at(object, "/metadata/ownerReferences").iter().map(|reference| resolve_owner(state, key, reference)).collect()
}

fn resolve_owner(state: &ServerState, dependent: &StoredKey, reference: &Value) -> Owner {
    let (group, _) = group_version(string_at(reference, "/apiVersion"));
    let owner_uid = string_at(reference, "/uid").to_owned();
    let unknown = Owner { key: None, is_absent: false, uid: owner_uid.clone() };
    let Some(resource) = state.registry.by_kind(group, string_at(reference, "/kind")) else {
        return unknown;
    };
    // An owner is in the namespace of its dependent, or cluster-scoped.
    let namespace = if resource.namespaced { dependent.namespace.clone() } else { None };
    if resource.namespaced && namespace.is_none() {
        return unknown;
    }
    let key = StoredKey {
        group: resource.group.clone(),
        version: resource.storage.clone(),
        kind: resource.kind.clone(),
        plural: resource.plural.clone(),
        namespace,
        name: string_at(reference, "/name").to_owned(),
    };
    let exists = state.store.find_key(&key).is_some_and(|owner| uid(owner) == owner_uid);
    Owner { key: exists.then_some(key), is_absent: !exists, uid: owner_uid }
}

/// The owner that an owner reference names.
pub(crate) struct Owner {
    /// Key of the owner, if an object with the referenced UID exists.
    pub(crate) key: Option<StoredKey>,
    /// True if the owner does not exist. False if its kind is not served: then it is unknown.
    pub(crate) is_absent: bool,
    pub(crate) uid: String,
}
