//! Which stacks each agent should have, and the target state that follows.

pub(crate) mod agent_replacement;
pub(crate) mod labels;
pub(crate) mod matching;
pub(crate) mod policies;
pub(crate) mod target_state;
pub(crate) mod targets;
