//! Per-kind behavior of writes: defaults, preparation, validation and warnings.

pub(crate) mod defaults;
pub(crate) mod prepare;
pub(crate) mod service_allocation;
pub(crate) mod validation;
