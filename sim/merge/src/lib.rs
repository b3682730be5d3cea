//! Server-side apply as a library: tracks which manager owns which field, and merges an applied object into a live one.
//!
//! Works on JSON documents and keeps ownership in the real `metadata.managedFields` format. A [`Shape`] describes how
//! lists and maps merge; it is read from a schema: [`Shape::from_components`] for built-in kinds,
//! [`Shape::from_schema`] for custom resources, [`Shape::object`] where there is no schema.
//!
//! ```
//! use serde_json::{Value, json};
//! use sindri_merge::{Shape, Writer, apply, extract};
//!
//! let shape = Shape::object();
//! let declared = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": "value"}});
//! let writer = Writer { manager: "me", api_version: "v1", subresource: "", now: "2026-01-01T00:00:00Z", blank: &Value::Null };
//! let live = apply(&shape, None, declared.clone(), &writer, false)?;
//! assert_eq!(extract(&shape, &live, "me", "").unwrap(), Some(declared));
//!
//! let other = Writer { manager: "you", ..writer };
//! let conflicting = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": "another"}});
//! let error = apply(&shape, Some(&live), conflicting, &other, false).unwrap_err();
//! assert_eq!(error.to_string(), "Apply failed with 1 conflict: conflict with \"me\": .data.key");
//! # Ok::<(), sindri_merge::ApplyError>(())
//! ```
//!
//! Left out on purpose: conversion between API versions (the caller passes documents of one version) and validation.

mod compare;
mod extract;
mod fieldset;
mod managers;
mod merge;
mod operation;
mod patch;
mod prune;
mod reconcile;
mod schema;
mod shape;

pub use compare::{Comparison, compare};
pub use extract::extract;
pub use fieldset::{FieldSet, FieldSetError, PathElement};
pub use managers::{Manager, ManagerKey, Managers, ManagersError, Operation};
pub use merge::merge;
pub use operation::{ApplyError, Conflict, Conflicts, Writer, apply, track_update};
pub use patch::{merge_patch, strategic_patch};
pub use shape::{ListKey, Shape};
