//! Merges an applied document into a live one. Applied values win.
//!
//! Removing what an applier no longer declares is in `prune`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::fieldset::PathElement;
use crate::shape::Shape;

/// Merges `applied` into `live`.
#[must_use]
pub fn merge(shape: &Shape, live: &Value, applied: &Value) -> Value {
    let mut merged = live.clone();
    merge_into(shape, &mut merged, applied);
    merged
}

fn merge_into(shape: &Shape, live: &mut Value, applied: &Value) {
    match (&mut *live, applied) {
        (Value::Object(live), Value::Object(applied)) if shape.is_granular_map() => {
            for (name, value) in applied {
                match live.get_mut(name) {
                    Some(live) => merge_into(shape.field(name), live, value),
                    None => drop(live.insert(name.clone(), value.clone())),
                }
            }
        }
        // Identifying items is expensive, and equal lists merge to themselves.
        (live, applied) if live == applied => {}
        (Value::Array(live_list), Value::Array(applied_list)) => {
            let merged = match (shape.items(live_list), shape.items(applied_list)) {
                (Some((live, item)), Some((applied, _))) => merge_items(item, &live, &applied),
                _ => applied_list.clone(),
            };
            *live_list = merged;
        }
        // A null declares the map or the list but none of its content.
        (Value::Object(map), Value::Null) if shape.is_granular_map() && !map.is_empty() => {}
        (Value::Array(list), Value::Null) if shape.is_associative() && !list.is_empty() => {}
        _ => *live = applied.clone(),
    }
}

/// Merges the items of two lists. Applied items keep their applied order; items that only the live list has are placed as
/// early as possible between them. Merging the result again changes nothing.
fn merge_items(item: &Shape, live: &[(PathElement, &Value)], applied: &[(PathElement, &Value)]) -> Vec<Value> {
    let known: BTreeMap<&PathElement, &Value> = live.iter().map(|(key, value)| (key, *value)).collect();
    let declared: BTreeSet<&PathElement> = applied.iter().map(|(key, _)| key).collect();
    let mut shared = applied.iter().map(|(key, _)| key).filter(|key| known.contains_key(key)).peekable();
    let mut merged = Vec::with_capacity(live.len() + applied.len());
    let mut old = live.iter().peekable();
    for (key, value) in applied {
        // Skips live items whose turn in the applied order is later, and takes the items that only the live list has.
        while let Some((found, undeclared)) = old.peek() {
            if !declared.contains(found) {
                merged.push((*undeclared).clone());
            } else if shared.peek() == Some(&found) {
                break;
            }
            old.next();
        }
        if shared.peek() == Some(&key) {
            shared.next();
        }
        if old.peek().is_some_and(|(found, _)| found == key) {
            old.next();
        }
        merged.push(known.get(key).map_or_else(|| (*value).clone(), |live| merge(item, live, value)));
    }
    merged.extend(old.filter(|(key, _)| !declared.contains(key)).map(|(_, value)| (*value).clone()));
    merged
}
