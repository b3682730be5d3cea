//! What every part of Sindri agrees on: ids, sequences, checksums, keys, bundles and the types on the wire.
//!
//! Pure: nothing here reads a clock, draws entropy or touches a network. What differs between
//! production and simulation is handed in as [`Clock`] and [`Entropy`].

mod alias_budget;
mod bundle;
mod checksum;
mod handed;
mod ids;
mod pak;
mod problem;
mod sequence;
mod strict;
pub mod wire;
pub mod yaml;

pub use bundle::{Bundle, BundleError, BundleFault, DeclaredObject, ObjectKey};
pub use checksum::Checksum;
pub use handed::{Clock, Entropy};
pub use ids::{
    AgentId, ApprovalId, AuditId, DeliveryId, EventId, GeneratorId, HealthId, LinkId, PakId, RevisionId, StackId,
    WebhookId,
};
pub use pak::{Pak, PakDigest, PakFormatError};
pub use problem::Problem;
pub use sequence::{Epoch, Sequence};
pub use strict::parse_json;
