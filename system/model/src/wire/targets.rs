//! Assignments of stacks to agents.

use serde::{Deserialize, Serialize};

use crate::{AgentId, LinkId, StackId};

/// Assignment of a stack to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentTarget {
    /// Id of the assignment.
    pub id: LinkId,
    /// Id of the agent.
    pub agent_id: AgentId,
    /// Id of the stack.
    pub stack_id: StackId,
}

/// Request to assign a stack to an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewAgentTarget {
    /// Id of the agent; must equal the id in the path.
    pub agent_id: AgentId,
    /// Id of the stack.
    pub stack_id: StackId,
}
