//! Server-side apply as a library: who owns which field, and what an apply makes of a live object.
//!
//! Works on JSON documents and keeps ownership in the real `metadata.managedFields` format. What a list or a map means
//! comes from a [`Shape`], which is read from a schema: [`Shape::from_components`] for built-in kinds,
//! [`Shape::from_schema`] for custom resources, [`Shape::object`] where there is none.
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
//! let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": "another"}});
//! let refused = apply(&shape, Some(&live), theirs, &other, false).unwrap_err();
//! assert_eq!(refused.to_string(), "Apply failed with 1 conflict: conflict with \"me\": .data.key");
//! # Ok::<(), sindri_merge::ApplyError>(())
//! ```
//!
//! Left out on purpose: conversion between API versions (the caller hands in documents of one version) and validation.

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
