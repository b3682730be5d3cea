//! Agents and the stacks that are targeted at them.

use http::{Method, StatusCode};
use sindri_model::wire::{
    Agent, AgentStatus, AgentTarget, AuthResponse, CreateAgentRequest, CreateAgentResponse, HeartbeatReport,
    LeaderAnnouncement, NewAgentTarget, RotateAgentPakResponse, RotatePakRequest, UpdateAgentRequest,
};
use sindri_model::{AgentId, StackId};

use crate::client::{Call, Client};
use crate::error::ClientError;
use crate::percent_encode::percent_encode;
use crate::target_state::read_agent_status;

impl Client {
    /// Returns the owner of this client's key.
    pub async fn whoami(&self) -> Result<AuthResponse, ClientError> {
        let call = Call::new(Method::POST, "/auth/pak".to_owned(), "read the owner of the key".to_owned());
        self.fetch_json(call, StatusCode::OK).await
    }

    /// Creates an agent. Its key is in the response and cannot be read again.
    pub async fn create_agent(&self, request: &CreateAgentRequest) -> Result<CreateAgentResponse, ClientError> {
        let operation = format!("create agent {} of cluster {}", request.name, request.cluster_name);
        let call = Call::new(Method::POST, "/agents".to_owned(), operation).with_json(request);
        self.fetch_json(call, StatusCode::CREATED).await
    }

    /// Finds the agent with that name in that cluster.
    pub async fn find_agent(&self, name: &str, cluster_name: &str) -> Result<Agent, ClientError> {
        let path = format!("/agents/?name={}&cluster_name={}", percent_encode(name), percent_encode(cluster_name));
        self.fetch_json(Call::get(path, format!("find agent {name} of cluster {cluster_name}")), StatusCode::OK).await
    }

    /// Reads an agent.
    pub async fn get_agent(&self, agent: AgentId) -> Result<Agent, ClientError> {
        self.fetch_json(Call::get(format!("/agents/{agent}"), format!("read agent {agent}")), StatusCode::OK).await
    }

    /// Lists all agents.
    pub async fn list_agents(&self) -> Result<Vec<Agent>, ClientError> {
        self.fetch_list("/agents", "list the agents").await
    }

    /// Changes an agent.
    pub async fn update_agent(&self, agent: AgentId, changes: &UpdateAgentRequest) -> Result<Agent, ClientError> {
        let call = Call::new(Method::PUT, format!("/agents/{agent}"), format!("change agent {agent}"));
        self.fetch_json(call.with_json(changes), StatusCode::OK).await
    }

    /// Deletes an agent: its key becomes invalid. Objects in its cluster stay.
    pub async fn delete_agent(&self, agent: AgentId) -> Result<(), ClientError> {
        self.send_expecting_no_content(Call::new(
            Method::DELETE,
            format!("/agents/{agent}"),
            format!("delete agent {agent}"),
        ))
        .await
    }

    /// Replaces the key of an agent. The new key is in the response and cannot be read again.
    pub async fn rotate_agent_key(
        &self,
        agent: AgentId,
        request: &RotatePakRequest,
    ) -> Result<RotateAgentPakResponse, ClientError> {
        let operation = format!("replace the key of agent {agent}");
        let call = Call::new(Method::POST, format!("/agents/{agent}/rotate-pak"), operation).with_json(request);
        self.fetch_json(call, StatusCode::OK).await
    }

    /// Announces the leader among the processes of an agent, whose reports the broker accepts from then on. A broker that is
    /// not Sindri's accepts those of every process.
    pub async fn announce_leader(&self, agent: AgentId, process: &str) -> Result<(), ClientError> {
        let operation = format!("announce the leader of agent {agent}");
        let announcement = LeaderAnnouncement { process: process.to_owned() };
        let call = Call::new(Method::PUT, format!("/agents/{agent}/leader"), operation).with_json(&announcement);
        self.broker_kind.without_additions(self.send_expecting_no_content(call).await)
    }

    /// Sends a heartbeat; returns the agent's status, if the response has it.
    pub async fn send_heartbeat(
        &self,
        agent: AgentId,
        report: &HeartbeatReport,
    ) -> Result<Option<AgentStatus>, ClientError> {
        let operation = format!("send the heartbeat of agent {agent}");
        let call = Call::new(Method::POST, format!("/agents/{agent}/heartbeat"), operation).with_json(report);
        let response = self.send_expecting(&call, StatusCode::NO_CONTENT).await?;
        Ok(read_agent_status(&response.headers))
    }

    /// Lists the stacks that are targeted at an agent.
    pub async fn list_targets(&self, agent: AgentId) -> Result<Vec<AgentTarget>, ClientError> {
        self.fetch_list(&format!("/agents/{agent}/targets"), &format!("list the targets of agent {agent}")).await
    }

    /// Targets a stack at an agent.
    pub async fn add_target(&self, agent: AgentId, stack: StackId) -> Result<AgentTarget, ClientError> {
        let operation = format!("target stack {stack} at agent {agent}");
        let body = NewAgentTarget { agent_id: agent, stack_id: stack };
        let call = Call::new(Method::POST, format!("/agents/{agent}/targets"), operation).with_json(&body);
        self.fetch_json(call, StatusCode::CREATED).await
    }

    /// Removes a stack from an agent's targets. The agent then removes its objects.
    pub async fn remove_target(&self, agent: AgentId, stack: StackId) -> Result<(), ClientError> {
        let operation = format!("remove stack {stack} from agent {agent}");
        self.send_expecting_no_content(Call::new(Method::DELETE, format!("/agents/{agent}/targets/{stack}"), operation))
            .await
    }
}
