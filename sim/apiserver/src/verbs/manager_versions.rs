//! Field managers that wrote in another version of a built-in kind: they lose the fields that a write changes, in their version.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sindri_merge::{Writer, track_update};

use super::resource_request::ResourceRequest;
use crate::object::fields::{array_at, group_version, metadata, string_at};
use crate::registry::conversion;
use crate::registry::types::types;

/// Removes the fields that a write changed from the managers of other versions.
pub(super) fn reconcile_managers(request: &ResourceRequest<'_>, live: &Value, object: Value) -> Value {
    let own = request.target.api_version();
    if !conversion::has_several_versions(&request.target.resource) {
        return object;
    }
    let written_in = |entry: &Value| string_at(entry, "/apiVersion").to_owned();
    let others: BTreeSet<String> =
        array_at(live, "/metadata/managedFields").iter().map(written_in).filter(|version| *version != own).collect();
    let mut object = object;
    for other in others {
        // Managed fields of another group cannot be converted and are dropped.
        let is_foreign = group_version(&other).0 != request.target.resource.group;
        let entries = if is_foreign { Some(Vec::new()) } else { in_version(request, live, &object, &other) };
        let Some(entries) = entries else { continue };
        let same = |one: &Value, other: &Value| {
            ["manager", "operation", "subresource"].iter().all(|part| one.get(part) == other.get(part))
        };
        // The order is kept, so that a write without changes stays one.
        let kept =
            array_at(&object, "/metadata/managedFields").iter().filter_map(|entry| match written_in(entry) == other {
                true => entries.iter().find(|left| same(left, entry)).cloned(),
                false => Some(entry.clone()),
            });
        let managers: Vec<Value> = kept.collect();
        metadata(&mut object).insert("managedFields".to_owned(), json!(managers));
    }
    object
}

/// Returns the managers of one version after the write.
fn in_version(request: &ResourceRequest<'_>, live: &Value, object: &Value, version: &str) -> Option<Vec<Value>> {
    let (group, short) = group_version(version);
    let typed = types().find_kind(group, short, &request.target.resource.kind)?;
    let (api_version, now) = (request.target.api_version(), request.timestamp());
    let blank = Value::Null;
    // The version distinguishes the writer from the managers of this version.
    let writer =
        Writer { manager: "", api_version: &api_version, subresource: request.subresource, now: &now, blank: &blank };
    let converted = |object: &Value| conversion::to_api_version(object, version, typed);
    let tracked =
        track_update(types().shape(&typed.name)?, Some(&converted(live)), &converted(object), &writer).ok()?;
    let entries = array_at(&tracked, "/metadata/managedFields").iter();
    Some(entries.filter(|entry| string_at(entry, "/apiVersion") == version).cloned().collect())
}
