//! Managers that wrote in another version of a built-in kind: what a write changes is taken from them in their own words.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sindri_merge::{Writer, track_update};

use super::call::Call;
use crate::object::fields::{group_version, list, metadata, text};
use crate::registry::conversion;
use crate::registry::types::types;

/// A written object whose managers of other versions have lost what the write changed.
pub(super) fn reconciled(call: &Call<'_>, live: &Value, object: Value) -> Value {
    let own = call.target.api_version();
    if !conversion::has_several_versions(&call.target.resource) {
        return object;
    }
    let written_in = |entry: &Value| text(entry, "/apiVersion").to_owned();
    let others: BTreeSet<String> =
        list(live, "/metadata/managedFields").iter().map(written_in).filter(|version| *version != own).collect();
    let mut object = object;
    for other in others {
        // Nobody can say in one group what a manager of another wrote; it is forgotten.
        let is_foreign = group_version(&other).0 != call.target.resource.group;
        let entries = if is_foreign { Some(Vec::new()) } else { in_version(call, live, &object, &other) };
        let Some(entries) = entries else { continue };
        let same = |one: &Value, other: &Value| {
            ["manager", "operation", "subresource"].iter().all(|part| one.get(part) == other.get(part))
        };
        // In the order in which they are, so that a write that changes nothing is none.
        let kept =
            list(&object, "/metadata/managedFields").iter().filter_map(|entry| match written_in(entry) == other {
                true => entries.iter().find(|left| same(left, entry)).cloned(),
                false => Some(entry.clone()),
            });
        let managers: Vec<Value> = kept.collect();
        metadata(&mut object).insert("managedFields".to_owned(), json!(managers));
    }
    object
}

/// The managers of one version, as the write leaves them.
fn in_version(call: &Call<'_>, live: &Value, object: &Value, version: &str) -> Option<Vec<Value>> {
    let (group, short) = group_version(version);
    let typed = types().find_kind(group, short, &call.target.resource.kind)?;
    let (api_version, now) = (call.target.api_version(), call.stamp());
    let blank = Value::Null;
    // Whoever writes is told apart from the managers of the version by the version.
    let writer =
        Writer { manager: "", api_version: &api_version, subresource: call.subresource, now: &now, blank: &blank };
    let converted = |object: &Value| conversion::to_api_version(object, version, typed);
    let tracked =
        track_update(types().shape(&typed.name)?, Some(&converted(live)), &converted(object), &writer).ok()?;
    let entries = list(&tracked, "/metadata/managedFields").iter();
    Some(entries.filter(|entry| text(entry, "/apiVersion") == version).cloned().collect())
}
