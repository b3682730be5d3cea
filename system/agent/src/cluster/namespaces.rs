//! Names of the namespaces that the agent uses by default.

/// Namespace of the agent's own objects (the Lease and the inventories), unless the agent is limited to one namespace.
pub const AGENT_NAMESPACE: &str = "sindri-system";
/// Namespace of declared objects that name none.
pub const DEFAULT_NAMESPACE: &str = "default";
