//! The generated kinds: their paths, and random objects whose fields come from small pools, so that two writers often write the
//! same field.

mod core;
mod custom;
mod kind;
mod network;
mod rbac;
mod workloads;

pub use kind::ResourceKind;

/// Returns all kinds.
#[must_use]
pub fn all() -> Vec<&'static ResourceKind> {
    [core::KINDS, workloads::KINDS, network::KINDS, rbac::KINDS, custom::KINDS].into_iter().flatten().collect()
}
