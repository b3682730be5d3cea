//! Tells others what happened.

pub(crate) mod subscription;
