//! Admission of writes: policies and webhooks.

pub(crate) mod policies;
