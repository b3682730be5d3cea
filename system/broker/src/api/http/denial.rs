//! Reasons for which a key does not allow an operation, with the codes that clients of the published API know.

use sindri_model::wire::AGENT_INACTIVE_CODE;

/// Reason for status 403.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// The operation is for the administrator.
    AdminRequired,
    /// The operation is not for agents that were deactivated.
    AgentInactive,
    /// The path names another agent than the holder of the key.
    AgentPakMismatch,
    /// The operation is for agents.
    AgentPakRequired,
    /// The stack of the revision was never assigned to the agent.
    AgentNotAssociated,
    /// The stack of the revision belongs to another generator.
    GeneratorNotAssociated,
    /// The path names another generator than the holder of the key.
    GeneratorNotOwned,
    /// The operation is for the administrator and for generators.
    GeneratorRequired,
    /// The registered agents of a generator are for the administrator and for that generator.
    NotAuthorized,
    /// The key allows only operations that change nothing.
    ReadOnlyKey,
    /// Only the administrator and generators create stacks.
    StackCreateDenied,
    /// A generator creates stacks for itself only.
    StackGeneratorMismatch,
    /// Labels and annotations of a stack are for its owner and for its agents.
    StackNotAccessible,
    /// The stack belongs to another generator.
    StackNotOwned,
    /// Only the administrator and generators list stacks.
    StacksListDenied,
    /// Only the administrator and generators add and remove targets.
    TargetCreateDenied,
    /// A generator targets its own stacks only.
    TargetGeneratorMismatch,
    /// Any other rejection of a role.
    Forbidden,
}

impl Denial {
    /// Returns the code, and the message for people.
    pub(crate) fn code_and_message(self) -> (&'static str, &'static str) {
        match self {
            Self::AdminRequired => ("admin_required", "only an administrator may do this"),
            Self::AgentInactive => (AGENT_INACTIVE_CODE, "this agent is deactivated; an administrator can activate it"),
            Self::AgentPakMismatch => ("agent_pak_mismatch", "only an administrator and this agent may do this"),
            Self::AgentPakRequired => ("agent_pak_required", "only an agent may do this"),
            Self::AgentNotAssociated => {
                ("agent_not_associated", "the stack of this deployment object is not assigned to this agent")
            }
            Self::GeneratorNotAssociated => {
                ("generator_not_associated", "the stack of this deployment object belongs to another generator")
            }
            Self::GeneratorNotOwned => ("generator_not_owned", "only an administrator and this generator may do this"),
            Self::GeneratorRequired => ("generator_required", "only an administrator and generators may do this"),
            Self::NotAuthorized => ("not_authorized", "only an administrator and this generator list its agents"),
            Self::ReadOnlyKey => ("read_only_key", "this key only reads"),
            Self::StackCreateDenied => ("stack_create_denied", "only an administrator and generators create stacks"),
            Self::StackGeneratorMismatch => ("stack_generator_mismatch", "a generator creates stacks for itself only"),
            Self::StackNotAccessible => {
                ("stack_not_accessible", "the stack belongs to another generator, or is not assigned to this agent")
            }
            Self::StackNotOwned => {
                ("stack_not_owned", "only an administrator and the generator of the stack may do this")
            }
            Self::StacksListDenied => ("stacks_list_denied", "only an administrator and generators list stacks"),
            Self::TargetCreateDenied => {
                ("target_create_denied", "only an administrator and generators add and remove targets")
            }
            Self::TargetGeneratorMismatch => {
                ("target_generator_mismatch", "a generator adds and removes targets of its own stacks only")
            }
            Self::Forbidden => ("forbidden", "this key does not allow this operation"),
        }
    }
}
