//! What agents report of the revisions that they carried out.

use http::{HeaderName, HeaderValue, Method, StatusCode};
use sindri_model::AgentId;
use sindri_model::wire::{AgentEvent, DeploymentObjectHealthUpdate, HealthStatusUpdate, NewAgentEvent};

use crate::client::{Call, Client};
use crate::error::ClientError;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

impl Client {
    /// Reports an outcome. The same `idempotency_key` from the same agent is recorded once, however often it
    /// is sent: a caller that got no answer sends it again.
    pub async fn report(&self, event: &NewAgentEvent, idempotency_key: &str) -> Result<AgentEvent, ClientError> {
        let agent = event.agent_id;
        let operation = format!("report the outcome of revision {} for agent {agent}", event.deployment_object_id);
        let call = Call::new(Method::POST, format!("/agents/{agent}/events"), operation).with_json(event);
        let key = HeaderValue::try_from(idempotency_key)
            .map_err(|_| call.malformed("the idempotency key holds characters that no header may have"))?;
        self.fetch(call.with_header(IDEMPOTENCY_KEY, key), StatusCode::CREATED).await
    }

    /// Says how a revision is doing on the cluster of an agent.
    pub async fn report_health(&self, agent: AgentId, update: DeploymentObjectHealthUpdate) -> Result<(), ClientError> {
        let operation = format!("say how revision {} is doing at agent {agent}", update.id);
        let update = HealthStatusUpdate { deployment_objects: vec![update] };
        let call = Call::new(Method::PATCH, format!("/agents/{agent}/health-status"), operation).with_json(&update);
        let _: serde_json::Value = self.fetch(call, StatusCode::OK).await?;
        Ok(())
    }

    /// What an agent last reported about each thing in its target state; nothing of its history.
    pub async fn outcomes(&self, agent: AgentId) -> Result<Vec<AgentEvent>, ClientError> {
        let operation = format!("list the last outcomes of agent {agent}");
        self.fetch(Call::get(format!("/agents/{agent}/outcomes"), operation), StatusCode::OK).await
    }

    /// What an agent reported, oldest first.
    pub async fn events(&self, agent: AgentId) -> Result<Vec<AgentEvent>, ClientError> {
        let operation = format!("list the events of agent {agent}");
        self.fetch(Call::get(format!("/agents/{agent}/events"), operation), StatusCode::OK).await
    }
}
