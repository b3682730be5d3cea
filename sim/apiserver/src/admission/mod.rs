//! Admission of writes: namespaces, limits, quotas, pods, policies and webhooks.

pub(crate) mod attributes;
pub(crate) mod certificates;
pub(crate) mod disruption_budget;
pub(crate) mod limit_range;
mod matching;
pub(crate) mod namespace_lifecycle;
mod pod_amounts;
pub(crate) mod pod_security;
pub(crate) mod pods;
pub(crate) mod policies;
mod priority;
pub(crate) mod quota;
pub(crate) mod storage_class;
pub(crate) mod volume_resize;
pub(crate) mod webhooks;
