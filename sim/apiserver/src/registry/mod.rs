//! The resources that are served: their kinds, versions, Go types and conversions between versions.

pub(crate) mod conversion;
pub(crate) mod kinds;
pub(crate) mod resource;
pub(crate) mod served;
pub(crate) mod types;
pub(crate) mod webhook_conversion;
