//! Plans that agents hold for approval, and the decisions about them.

use http::{Method, StatusCode};
use sindri_model::wire::{Approval, ApprovalRequest, ApprovalState};
use sindri_model::{AgentId, ApprovalId, StackId};

use crate::client::{Call, Client};
use crate::error::ClientError;

/// Page size; the maximum that the broker accepts.
const PAGE_LIMIT: usize = 1_000;

impl Client {
    /// Requests the approval of a plan. Repeating the request returns the decision.
    pub async fn request_approval(
        &self,
        agent: AgentId,
        stack: StackId,
        request: &ApprovalRequest,
    ) -> Result<Approval, ClientError> {
        let operation = format!("request an approval of stack {stack} for agent {agent}");
        let call = Call::new(Method::PUT, format!("/agents/{agent}/stacks/{stack}/approval"), operation);
        self.fetch_json(call.with_json(request), StatusCode::OK).await
    }

    /// Lists the approvals that the key may read, oldest first, optionally only those in one state.
    pub async fn list_approvals(&self, state: Option<ApprovalState>) -> Result<Vec<Approval>, ClientError> {
        let state = state.map_or_else(String::new, |state| format!("&state={state}"));
        let query = format!("?limit={PAGE_LIMIT}{state}");
        self.fetch_pages("/approvals", query, "list the approvals", usize::MAX).await
    }

    /// Reads an approval.
    pub async fn get_approval(&self, approval: ApprovalId) -> Result<Approval, ClientError> {
        let call = Call::get(format!("/approvals/{approval}"), format!("read approval {approval}"));
        self.fetch_json(call, StatusCode::OK).await
    }

    /// Permits an agent to execute its held plan.
    pub async fn approve(&self, approval: ApprovalId) -> Result<Approval, ClientError> {
        self.decide(approval, "approve").await
    }

    /// Forbids an agent to execute its held plan.
    pub async fn reject(&self, approval: ApprovalId) -> Result<Approval, ClientError> {
        self.decide(approval, "reject").await
    }

    async fn decide(&self, approval: ApprovalId, decision: &str) -> Result<Approval, ClientError> {
        let path = format!("/approvals/{approval}/{decision}");
        let call = Call::new(Method::POST, path, format!("{decision} approval {approval}"));
        self.fetch_json(call, StatusCode::OK).await
    }
}
