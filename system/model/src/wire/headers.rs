//! Headers and an error code for Sindri's own agent.

/// Header of a target state response with the epoch of the broker's database.
pub const EPOCH_HEADER: &str = "x-sindri-epoch";

/// Header of a request with which a client asks that unknown fields in the body are rejected: `true`.
pub const STRICT_HEADER: &str = "sindri-strict";

/// Header of an agent's reports with the name of the process that makes them. The broker rejects reports of a process while
/// another one has announced itself as the leader.
pub const PROCESS_HEADER: &str = "sindri-process";

/// Code of the error with which the broker rejects such reports.
pub const OTHER_LEADER_CODE: &str = "other_leader";
/// Code of the error with which the broker rejects a request of an agent that was deactivated.
pub const AGENT_INACTIVE_CODE: &str = "agent_inactive";

/// Header with the status of an agent. In responses to polls and heartbeats it is the status that the broker has
/// stored; in a poll request it is the status that the agent has last seen.
pub const AGENT_STATUS_HEADER: &str = "sindri-agent-status";
