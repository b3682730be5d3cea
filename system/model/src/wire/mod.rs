//! The types of the HTTP API, field for field as Brokkr's public API has them.
//!
//! Existing clients reject unknown fields, so no field is added to the response of an existing operation. Additional
//! data for Sindri's own agent is sent in headers.

mod admins;
mod agents;
mod approvals;
mod audit;
mod auth;
mod config;
mod deployment_objects;
mod events;
mod fleet;
mod generators;
mod headers;
mod health;
mod held_revisions;
mod keys;
mod labels;
mod overview;
mod policies;
mod proposals;
mod requests;
mod stacks;
mod status;
mod target_version;
mod targets;
mod webhooks;

pub use admins::{Admin, AdminRole, AdminWithPak, NewAdmin};
pub use agents::{
    Agent, AgentStatus, CreateAgentRequest, CreateAgentResponse, HeartbeatReport, LeaderAnnouncement,
    RotateAgentPakResponse, UpdateAgentRequest,
};
pub use approvals::{Approval, ApprovalRequest, ApprovalState, ApprovalStateError};
pub use audit::{AuditLog, AuditLogListResponse};
pub use auth::AuthResponse;
pub use config::{ConfigChange, ConfigReloadResponse};
pub use deployment_objects::{CreateDeploymentObjectRequest, DeploymentObject, STACK_NAMES_HEADER};
pub use events::{AgentEvent, EVENT_TYPE_DEPLOY, EventStatus, NamedEvent, NewAgentEvent};
pub use fleet::{AgentFleetStatusResponse, FleetAgentRecord};
pub use generators::{
    AgentGeneratorRegistration, AgentRegistrationBody, CreateGeneratorResponse, Generator, NewGenerator,
    UpdateGeneratorRequest,
};
pub use headers::{
    AGENT_INACTIVE_CODE, AGENT_STATUS_HEADER, EPOCH_HEADER, OTHER_LEADER_CODE, PROCESS_HEADER, STRICT_HEADER,
};
pub use health::{
    DeploymentHealth, DeploymentHealthResponse, DeploymentObjectHealthUpdate, HealthStatus, HealthStatusError,
    HealthStatusUpdate, StackDeploymentHealth, StackHealthResponse,
};
pub use held_revisions::{HELD_REVISIONS_HEADER, HeldRevisions};
pub use keys::{PakSummary, RotateAdminPakResponse, RotatePakRequest};
pub use labels::{
    AgentAnnotation, AgentLabel, AnnotationValue, NewAgentAnnotation, NewAgentLabel, NewStackAnnotation,
    StackAnnotation, StackLabel,
};
pub use overview::{
    AgentOverview, AssignmentState, AssignmentStatus, RevisionOverview, RevisionSummary, StackOverview, StatusOverview,
};
pub use policies::{
    DEPENDS_ON_ANNOTATION, POLICY_PREFIX, StackDependency, StackPolicy, StackSuspension, SuspensionChange,
};
pub use proposals::{
    AgentProposal, CreatedProposal, PROPOSALS_HEADER, PlanReport, PlanStatus, Proposal, ProposalRequest, ProposedPlan,
    cut_plan,
};
pub use requests::{REQUESTS_HEADER, REQUESTS_MAX, SubmittingRequest, SubmittingRequests};
pub use stacks::{NewStack, Stack, UpdateStackRequest};
pub use status::{
    AgentStackStatus, Condition, ConditionStatus, ReportedCondition, StackState, StackStatus, StackStatusReport,
    condition,
};
pub use target_version::{TARGET_VERSION_HEADER, TargetVersion, TargetVersionError};
pub use targets::{AgentTarget, NewAgentTarget};
pub use webhooks::{
    CreateWebhookRequest, DeliveryResultRequest, PendingWebhookDelivery, TestWebhookResponse, UpdateWebhookRequest,
    WebhookDelivery, WebhookFilters, WebhookResponse,
};
