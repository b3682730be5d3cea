//! The observed state of cluster and external API.

use std::collections::BTreeSet;

use serde_json::Value;

/// Observed state, of everything or of one shape.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedShapes {
    /// The shapes.
    pub shapes: Vec<Value>,
    /// The resources in the external API: those of the controller and those of other clients.
    pub resources: Vec<Value>,
    /// The names of resources that the controller has recorded.
    pub records: BTreeSet<String>,
}
