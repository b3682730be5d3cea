//! Generators, and the agents that are registered with them.

use http::{Method, StatusCode};
use sindri_model::wire::{
    AgentGeneratorRegistration, AgentRegistrationBody, CreateGeneratorResponse, Generator, NewGenerator,
};
use sindri_model::{AgentId, GeneratorId};

use crate::client::{Call, Client};
use crate::error::ClientError;

impl Client {
    /// Creates a generator. Its key is in the response and cannot be read again.
    pub async fn create_generator(&self, request: &NewGenerator) -> Result<CreateGeneratorResponse, ClientError> {
        let call = Call::new(Method::POST, "/generators".to_owned(), format!("create generator {}", request.name));
        self.fetch_json(call.with_json(request), StatusCode::CREATED).await
    }

    /// Lists all generators.
    pub async fn list_generators(&self) -> Result<Vec<Generator>, ClientError> {
        self.fetch_json(Call::get("/generators".to_owned(), "list the generators".to_owned()), StatusCode::OK).await
    }

    /// Registers an agent with a generator, so that the generator's stacks may be targeted at it. Fails with 409 if
    /// it is registered already.
    pub async fn register_agent(
        &self,
        generator: GeneratorId,
        agent: AgentId,
    ) -> Result<AgentGeneratorRegistration, ClientError> {
        let operation = format!("register agent {agent} with generator {generator}");
        let body = AgentRegistrationBody { agent_id: Some(agent) };
        let call = Call::new(Method::POST, format!("/generators/{generator}/register"), operation).with_json(&body);
        self.fetch_json(call, StatusCode::CREATED).await
    }
}
