//! The broker on a listener: accepts connections, enforces their limits, and closes them in order at shutdown.
//!
//! The listener is passed in, so the same code runs on real sockets and in the simulation. HTTP/1.1 only.

mod body;
mod connection;
mod deadlines;
mod limits;
mod peers;
mod proxy_protocol;
mod room;
mod server;

pub use limits::Limits;
pub use server::{Peer, ServeOptions, serve, serve_with};
