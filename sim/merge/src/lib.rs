//! Server-side apply as a library: who owns which field, and what an apply makes of a live object.
//!
//! Works on JSON documents and keeps ownership in the real `metadata.managedFields` format. What a list or a map means
//! comes from a [`Shape`], which is either written down for the built-in kinds or read from a schema.
//!
//! Left out on purpose: conversion between API versions (the caller hands in documents of one version) and validation.

mod compare;
mod fieldset;
mod managers;
mod merge;
mod operation;
mod patch;
mod prune;
mod shape;

pub use compare::{Comparison, compare};
pub use fieldset::{FieldSet, FieldSetError, PathElement};
pub use managers::{Manager, ManagerKey, Managers, ManagersError, Operation};
pub use merge::merge;
pub use operation::{ApplyError, Conflict, Conflicts, Writer, apply, track_update};
pub use patch::{merge_patch, strategic_patch};
pub use shape::{ListKey, Shape};
