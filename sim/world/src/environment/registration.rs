//! First actions in every environment: the operator creates a generator and the agents of the scenario.
//!
//! Left out: starting the agents and their clusters, which each environment does in its own way.

use std::cell::RefCell;

use sindri_client::{Client, ClientError};
use sindri_model::GeneratorId;
use sindri_model::wire::{AgentStatus, CreateAgentRequest, CreateAgentResponse, NewGenerator, UpdateAgentRequest};

use super::error::StepError;
use super::interface::Environment;
use super::operator_call::call_broker;
use crate::expected_state::ExpectedState;

/// An agent that the broker knows, active and registered with the operator's generator.
#[derive(Clone, Debug)]
pub struct RegisteredAgent {
    /// Its name, which is also the name of its cluster.
    pub name: String,
    /// Key with which it authenticates to the broker.
    pub key: String,
}

/// Creates an agent and activates it.
pub async fn register_agent(
    client: &Client,
    name: &str,
    generator: GeneratorId,
) -> Result<CreateAgentResponse, ClientError> {
    let (name, cluster_name) = (name.to_owned(), name.to_owned());
    let created = client
        .create_agent(&CreateAgentRequest {
            name,
            cluster_name,
            generator_ids: Some(vec![generator]),
            key_expires_at: None,
        })
        .await?;
    let active = UpdateAgentRequest { status: Some(AgentStatus::Active), ..UpdateAgentRequest::default() };
    client.update_agent(created.agent.id, &active).await?;
    Ok(created)
}

/// Creates the generator and the agents, and records them in the expected state.
pub fn register_agents(
    environment: &mut dyn Environment,
    names: &[String],
    expected: &RefCell<ExpectedState>,
) -> Result<Vec<RegisteredAgent>, StepError> {
    let names = names.to_vec();
    let created = call_broker(environment, move |client| async move {
        let generator = client
            .create_generator(&NewGenerator { name: "operator".into(), description: None, key_expires_at: None })
            .await?;
        let mut agents = Vec::new();
        for name in names {
            agents.push(register_agent(&client, &name, generator.generator.id).await?);
        }
        Ok((generator.generator.id, agents))
    })?;
    let (generator, agents) = created.map_err(|error: ClientError| StepError::Failed(error.to_string()))?;
    let mut expected = expected.borrow_mut();
    expected.generator = Some(generator);
    let registered = agents.into_iter().map(|created| {
        expected.agents.insert(created.agent.name.clone(), created.agent.id);
        RegisteredAgent { name: created.agent.name, key: created.initial_pak }
    });
    Ok(registered.collect())
}
