//! What agents hold back, and what somebody decides about it.

use http::{Method, StatusCode};
use sindri_model::wire::{Approval, ApprovalRequest, ApprovalState};
use sindri_model::{AgentId, ApprovalId, StackId};

use crate::client::{Call, Client};
use crate::error::ClientError;

/// As many as a broker gives at once.
const LIMIT: usize = 1_000;

impl Client {
    /// Asks whether the agent may carry a plan out. Asking again says what was decided.
    pub async fn propose(
        &self,
        agent: AgentId,
        stack: StackId,
        request: &ApprovalRequest,
    ) -> Result<Approval, ClientError> {
        let operation = format!("ask for an approval of stack {stack} for agent {agent}");
        let call = Call::new(Method::PUT, format!("/agents/{agent}/stacks/{stack}/approval"), operation);
        self.fetch(call.with_json(request), StatusCode::OK).await
    }

    /// What agents hold or held back and the key may see, oldest first; only those in a state, if one is given. The
    /// first thousand.
    pub async fn approvals(&self, state: Option<ApprovalState>) -> Result<Vec<Approval>, ClientError> {
        let state = state.map_or_else(String::new, |state| format!("&state={state}"));
        let call = Call::get(format!("/approvals?limit={LIMIT}{state}"), "list the approvals".to_owned());
        self.fetch(call, StatusCode::OK).await
    }

    /// One of them.
    pub async fn approval(&self, approval: ApprovalId) -> Result<Approval, ClientError> {
        let call = Call::get(format!("/approvals/{approval}"), format!("read approval {approval}"));
        self.fetch(call, StatusCode::OK).await
    }

    /// Lets an agent carry out what it holds back.
    pub async fn approve(&self, approval: ApprovalId) -> Result<Approval, ClientError> {
        self.decide(approval, "approve").await
    }

    /// Keeps an agent from carrying out what it holds back.
    pub async fn reject(&self, approval: ApprovalId) -> Result<Approval, ClientError> {
        self.decide(approval, "reject").await
    }

    async fn decide(&self, approval: ApprovalId, decision: &str) -> Result<Approval, ClientError> {
        let path = format!("/approvals/{approval}/{decision}");
        let call = Call::new(Method::POST, path, format!("{decision} approval {approval}"));
        self.fetch(call, StatusCode::OK).await
    }
}
