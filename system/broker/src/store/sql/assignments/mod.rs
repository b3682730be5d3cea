//! Assignments of stacks to agents, and the target states that follow from them.

pub(crate) mod agent_replacement;
pub(crate) mod assigned;
pub(crate) mod dependencies;
pub(crate) mod labels;
pub(crate) mod matching;
pub(crate) mod policies;
pub(crate) mod suspension;
pub(crate) mod target_state;
pub(crate) mod targets;
