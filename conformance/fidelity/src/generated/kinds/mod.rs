//! The kinds that are generated: where each is served, and objects of it whose fields come from small pools, so that two
//! writers often mean the same field.

mod core;
mod custom;
mod network;
mod rights;
mod workloads;

use serde_json::Value;

use super::dice::Dice;

/// A kind, and how objects of it are made up.
#[derive(Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// Group and version, as in `apps/v1`.
    pub api_version: &'static str,
    /// How its path names it.
    pub plural: &'static str,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Whether it comes from a definition.
    pub custom: bool,
    /// Its subresources that are generated.
    pub parts: &'static [&'static str],
    /// An object without metadata, mostly a valid one.
    pub content: fn(&mut Dice) -> Value,
    /// A status for it.
    pub status: fn(&mut Dice) -> Value,
    /// How often it is chosen.
    pub weight: u32,
}

impl Kind {
    /// The path of its objects in a namespace, or in the cluster.
    #[must_use]
    pub fn collection(&self, namespace: &str) -> String {
        let root = if self.api_version.contains('/') { "/apis" } else { "/api" };
        let place = if self.namespaced { format!("/namespaces/{namespace}") } else { String::new() };
        format!("{root}/{}{place}/{}", self.api_version, self.plural)
    }
}

/// Every kind.
#[must_use]
pub fn all() -> Vec<&'static Kind> {
    [core::KINDS, workloads::KINDS, network::KINDS, rights::KINDS, custom::KINDS].into_iter().flatten().collect()
}

fn nothing(_: &mut Dice) -> Value {
    Value::Null
}
