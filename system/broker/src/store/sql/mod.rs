//! The operations of the store, written once for both databases.
//!
//! The folders import in one direction: `shared`, `tables`, `assignments`, `reports`, `stacks`, `fleet`; `webhooks`
//! needs the first two only.
//!
//! Every operation that changes a target state first takes the next number of the one counter
//! ([`shared::counter::next_number`]), which locks the counter. So such operations run one after another, and their
//! numbers become visible in their order.

pub(super) mod assignments;
pub(super) mod cipher_slot;
pub(super) mod database;
pub(super) mod figures;
pub(super) mod fleet;
pub(super) mod group;
pub(super) mod observer_slot;
pub(super) mod reports;
pub(super) mod retention;
pub(super) mod shared;
pub(super) mod stacks;
pub(super) mod tables;
pub(super) mod webhooks;
