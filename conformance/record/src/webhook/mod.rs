//! Webhooks of an exchange.
//!
//! A remote API server calls them on a port; a simulated one asks for the same replies without a network.

mod replies;
mod server;

pub use replies::{ScriptedReply, SentReply, Webhooks};
pub use server::{WebhookAddress, WebhookServer, WebhookServerError};
