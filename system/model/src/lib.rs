//! Types that every part of Sindri shares: ids, sequences, checksums, access keys, bundles and wire types.
//!
//! Pure: nothing here reads a clock, draws entropy or uses the network. Production and simulation inject a
//! [`Clock`] and an [`Entropy`].

mod alias_budget;
mod bundle;
mod checksum;
mod clock;
mod entropy;
mod ids;
mod ignored_fields;
pub mod limits;
pub mod ownership;
mod pak;
pub mod policy;
mod problem;
mod sequence;
mod service_account;
mod strict;
pub mod text;
pub mod wire;
pub mod yaml;

pub use bundle::{Bundle, BundleError, DeclaredObject, DocumentError, EMPTY_BUNDLE_TEXT, ObjectKey};
pub use checksum::Checksum;
pub use clock::Clock;
pub use entropy::Entropy;
pub use ids::{
    AdminId, AgentId, ApprovalId, AuditId, DeliveryId, EventId, GeneratorId, HealthId, LinkId, PakId, ProposalId,
    RevisionId, StackId, WebhookId,
};
pub use ignored_fields::{IGNORE_ANNOTATION, IgnoreError, IgnoredFields};
pub use pak::{Pak, PakDigest, PakFormatError};
pub use problem::Problem;
pub use sequence::{Epoch, Sequence};
pub use service_account::ServiceAccount;
pub use strict::parse_json;
