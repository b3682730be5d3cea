//! What happens first on every stage: the operator makes a generator and the agents of the story.
//!
//! Left out: starting the agents and their clusters, which each stage does in its own way.

use std::cell::RefCell;

use sindri_client::{Client, ClientError};
use sindri_model::GeneratorId;
use sindri_model::wire::{AgentStatus, CreateAgentRequest, CreateAgentResponse, NewGenerator, UpdateAgentRequest};

use super::{Stage, Trouble, operate};
use crate::ledger::Ledger;

/// An agent that the broker knows, active and registered with the operator's generator.
#[derive(Clone, Debug)]
pub struct Enlisted {
    /// Its name, which is also the name of its cluster.
    pub name: String,
    /// The key by which the broker knows it.
    pub key: String,
}

/// Makes an agent, and lets it act.
pub async fn enlist_one(
    client: &Client,
    name: &str,
    generator: GeneratorId,
) -> Result<CreateAgentResponse, ClientError> {
    let (name, cluster_name) = (name.to_owned(), name.to_owned());
    let created =
        client.create_agent(&CreateAgentRequest { name, cluster_name, generator_ids: Some(vec![generator]) }).await?;
    let active = UpdateAgentRequest { status: Some(AgentStatus::Active), ..UpdateAgentRequest::default() };
    client.update_agent(created.agent.id, &active).await?;
    Ok(created)
}

/// Makes the generator and the agents, and notes them in the ledger.
pub fn enlist(stage: &mut dyn Stage, names: &[String], ledger: &RefCell<Ledger>) -> Result<Vec<Enlisted>, Trouble> {
    let names = names.to_vec();
    let created = operate(stage, move |client| async move {
        let generator = client.create_generator(&NewGenerator { name: "operator".into(), description: None }).await?;
        let mut agents = Vec::new();
        for name in names {
            agents.push(enlist_one(&client, &name, generator.generator.id).await?);
        }
        Ok((generator.generator.id, agents))
    })?;
    let (generator, agents) = created.map_err(|error: ClientError| Trouble::Broken(error.to_string()))?;
    let mut ledger = ledger.borrow_mut();
    ledger.generator = Some(generator);
    let enlisted = agents.into_iter().map(|created| {
        ledger.agents.insert(created.agent.name.clone(), created.agent.id);
        Enlisted { name: created.agent.name, key: created.initial_pak }
    });
    Ok(enlisted.collect())
}
