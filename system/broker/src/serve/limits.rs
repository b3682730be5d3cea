//! Limits of one server and of each of its connections.

use std::time::Duration;

/// Limits of connections. A connection that exceeds one is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of open connections; at that number the oldest one without an accepted key is closed for a new one.
    pub connections_max: usize,
    /// Number of open connections of one peer; further ones are closed at once.
    pub connections_per_peer_max: usize,
    /// Time from the first byte of a request's head, or from the start of the connection, to the head's last byte.
    pub head_time_max: Duration,
    /// Time from the end of a request's head to the end of its body.
    pub body_time_max: Duration,
    /// Time between two requests on one connection. A request that waits for its response is not idle.
    pub idle_time_max: Duration,
    /// Time in which the client reads no byte of a response.
    pub stall_time_max: Duration,
    /// Time of the TLS handshake.
    pub handshake_time_max: Duration,
    /// Time for the requests that are in progress at shutdown.
    pub shutdown_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 16_384,
            connections_per_peer_max: 4_096,
            head_time_max: Duration::from_secs(10),
            body_time_max: Duration::from_secs(30),
            idle_time_max: Duration::from_secs(5 * 60),
            stall_time_max: Duration::from_secs(30),
            handshake_time_max: Duration::from_secs(10),
            shutdown_time_max: Duration::from_secs(10),
        }
    }
}
