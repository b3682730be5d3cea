//! The port of every simulated server.

/// Port on which brokers and API servers listen.
pub const HTTP_PORT: u16 = 80;
