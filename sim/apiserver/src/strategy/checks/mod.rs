//! Checks that several kinds share.

pub(crate) mod data;
pub(crate) mod immutability;
pub(crate) mod jobs;
pub(crate) mod metadata;
pub(crate) mod names;
pub(crate) mod pod_spec;
pub(crate) mod ports;
pub(crate) mod struct_diff;
pub(crate) mod workloads;
