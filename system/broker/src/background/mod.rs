//! Background loops of the broker: write heartbeats, detect offline agents, follow the changes of other brokers, and
//! deliver webhooks.

mod heartbeats;
mod offline;
mod replicas;
mod run;
mod webhook_delivery;
