//! Webhook subscriptions and the delivery of their messages.

pub(crate) mod deliveries;
pub(crate) mod subscriptions;
