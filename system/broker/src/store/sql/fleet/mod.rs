//! Administrators, agents and generators, their registrations, keys and heartbeats.

pub(crate) mod admins;
pub(crate) mod agents;
pub(crate) mod generators;
pub(crate) mod heartbeats;
pub(crate) mod keys;
pub(crate) mod overview;
pub(crate) mod registrations;
