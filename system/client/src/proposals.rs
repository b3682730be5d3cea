//! Proposals: texts for stacks that are not submitted, and the plans of agents for them.

use http::{Method, StatusCode};
use sindri_model::wire::{AgentProposal, CreatedProposal, PlanReport, Proposal, ProposalRequest};
use sindri_model::{AgentId, ProposalId, StackId};

use crate::client::{Call, Client};
use crate::error::ClientError;

impl Client {
    /// Asks the agents of a stack for their plans of a text.
    pub async fn create_proposal(&self, stack: StackId, yaml: &str) -> Result<CreatedProposal, ClientError> {
        let operation = format!("propose a text for stack {stack}");
        let call = Call::new(Method::POST, format!("/stacks/{stack}/proposals"), operation);
        let request = ProposalRequest { yaml_content: yaml.to_owned() };
        self.fetch_json(call.with_json(&request), StatusCode::CREATED).await
    }

    /// Reads a proposal with the plans that there are.
    pub async fn get_proposal(&self, stack: StackId, proposal: ProposalId) -> Result<Proposal, ClientError> {
        let path = format!("/stacks/{stack}/proposals/{proposal}");
        self.fetch_json(Call::get(path, format!("read proposal {proposal}")), StatusCode::OK).await
    }

    /// Lists the oldest proposals that an agent has not answered.
    pub async fn list_proposals(&self, agent: AgentId) -> Result<Vec<AgentProposal>, ClientError> {
        let call = Call::get(format!("/agents/{agent}/proposals"), format!("list the proposals for agent {agent}"));
        self.fetch_json(call, StatusCode::OK).await
    }

    /// Reports the plan of an agent for a proposal. The first one stays.
    pub async fn report_plan(
        &self,
        agent: AgentId,
        proposal: ProposalId,
        report: &PlanReport,
    ) -> Result<(), ClientError> {
        let path = format!("/agents/{agent}/proposals/{proposal}/plan");
        let call = Call::new(Method::PUT, path, format!("report the plan for proposal {proposal}"));
        self.send_expecting_no_content(call.with_json(report)).await
    }
}
