//! SPDY/3.1 as Kubernetes clients speak it on an upgraded connection: frames, compressed headers, streams.
//!
//! The server's side of a connection as a machine: bytes go in, events and bytes come out. Every length is bounded.
//! Left out on purpose: flow control, priorities, settings and streams that the server opens, which those clients ignore too.

pub(crate) mod connection;
mod dictionary;
mod frame;
pub(crate) mod headers;

#[cfg(test)]
mod tests;
