//! Outcomes and health that agents report.

use http::{HeaderName, HeaderValue, Method, StatusCode};
use sindri_model::AgentId;
use sindri_model::wire::{AgentEvent, DeploymentObjectHealthUpdate, HealthStatusUpdate, NewAgentEvent};

use crate::client::{Call, Client};
use crate::error::ClientError;

pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

impl Client {
    /// Reports an outcome. It is recorded once per agent and `idempotency_key`, so that a caller that got no response
    /// can send it again.
    pub async fn report_outcome(
        &self,
        event: &NewAgentEvent,
        idempotency_key: &str,
    ) -> Result<AgentEvent, ClientError> {
        let agent = event.agent_id;
        let operation = format!("report the outcome of revision {} for agent {agent}", event.deployment_object_id);
        let call = Call::new(Method::POST, format!("/agents/{agent}/events"), operation).with_json(event);
        let key = HeaderValue::try_from(idempotency_key)
            .map_err(|_| call.malformed_response("the idempotency key is not a valid header value"))?;
        self.fetch_json(call.with_header(IDEMPOTENCY_KEY, key), StatusCode::CREATED).await
    }

    /// Reports the health of a revision on an agent's cluster.
    pub async fn report_health(&self, agent: AgentId, update: DeploymentObjectHealthUpdate) -> Result<(), ClientError> {
        let operation = format!("report the health of revision {} for agent {agent}", update.id);
        let update = HealthStatusUpdate { deployment_objects: vec![update] };
        let call = Call::new(Method::PATCH, format!("/agents/{agent}/health-status"), operation).with_json(&update);
        self.send_expecting(&call, StatusCode::OK).await.map(drop)
    }

    /// Lists the last outcome that an agent reported for each revision in its target state. A broker that is not Sindri's
    /// has no such list, so the agent reports again.
    pub async fn list_outcomes(&self, agent: AgentId) -> Result<Vec<AgentEvent>, ClientError> {
        let operation = format!("list the last outcomes of agent {agent}");
        self.broker_kind.without_additions(self.fetch_list(&format!("/agents/{agent}/outcomes"), &operation).await)
    }

    /// Lists all events of an agent, oldest first.
    pub async fn list_events(&self, agent: AgentId) -> Result<Vec<AgentEvent>, ClientError> {
        self.fetch_list(&format!("/agents/{agent}/events"), &format!("list the events of agent {agent}")).await
    }
}
