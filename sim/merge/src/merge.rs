//! The union of a live document and an applied one, in which the applied one wins.
//!
//! Removing what an applier no longer declares is the work of `prune`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::fieldset::PathElement;
use crate::shape::Shape;

/// Merges `applied` into `live`.
#[must_use]
pub fn merge(shape: &Shape, live: &Value, applied: &Value) -> Value {
    match (live, applied) {
        (Value::Object(live), Value::Object(applied)) if shape.is_granular_map() => {
            let mut merged = live.clone();
            for (name, value) in applied {
                let value = live.get(name).map_or_else(|| value.clone(), |live| merge(shape.field(name), live, value));
                merged.insert(name.clone(), value);
            }
            Value::Object(merged)
        }
        (Value::Array(live_list), Value::Array(applied_list)) => {
            match (shape.items(live_list), shape.items(applied_list)) {
                (Some((live, item)), Some((applied, _))) => Value::Array(merge_items(item, &live, &applied)),
                _ => applied.clone(),
            }
        }
        _ => applied.clone(),
    }
}

/// Applied items come in the order in which they were applied; the others keep their place before the item that they
/// preceded. Merging the result again changes nothing.
fn merge_items(item: &Shape, live: &[(PathElement, &Value)], applied: &[(PathElement, &Value)]) -> Vec<Value> {
    let position: BTreeMap<&PathElement, usize> =
        live.iter().enumerate().map(|(index, (key, _))| (key, index)).collect();
    let declared: BTreeSet<&PathElement> = applied.iter().map(|(key, _)| key).collect();
    let mut merged = Vec::with_capacity(live.len() + applied.len());
    let mut next = 0;
    for (key, value) in applied {
        let Some(&index) = position.get(key) else {
            merged.push((*value).clone());
            continue;
        };
        while next < index {
            let (key, undeclared) = &live[next];
            if !declared.contains(key) {
                merged.push((*undeclared).clone());
            }
            next += 1;
        }
        next = next.max(index + 1);
        merged.push(merge(item, live[index].1, value));
    }
    merged.extend(live[next..].iter().filter(|(key, _)| !declared.contains(key)).map(|(_, value)| (*value).clone()));
    merged
}
