//! Headers with data for Sindri's own agent.

/// Header of a target state response with the epoch of the broker's database.
pub const EPOCH_HEADER: &str = "x-sindri-epoch";

/// Header of a request with which a client asks that unknown fields in the body are rejected: `true`.
pub const STRICT_HEADER: &str = "sindri-strict";

/// Header with the status of an agent. In responses to polls and heartbeats it is the status that the broker has
/// stored; in a poll request it is the status that the agent has last seen.
pub const AGENT_STATUS_HEADER: &str = "sindri-agent-status";
