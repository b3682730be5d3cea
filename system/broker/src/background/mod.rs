//! Background loops of the broker: write heartbeats and failed logins, detect offline agents, follow the changes of other brokers, begin an
//! epoch when the database was replaced, deliver webhooks, delete old records, and fetch the keys of a provider of tokens.

mod bundle_encryption;
mod failed_logins;
mod heartbeats;
mod offline;
mod oidc_keys;
mod replicas;
mod restores;
mod retention;
mod run;
mod webhook_delivery;
