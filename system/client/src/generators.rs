//! Generators, and the agents that are registered with them.

use http::{Method, StatusCode};
use sindri_model::wire::{
    AgentGeneratorRegistration, AgentRegistrationBody, CreateGeneratorResponse, Generator, NewGenerator,
    RotatePakRequest, UpdateGeneratorRequest,
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
        self.fetch_list("/generators", "list the generators").await
    }

    /// Reads a generator.
    pub async fn get_generator(&self, generator: GeneratorId) -> Result<Generator, ClientError> {
        let call = Call::get(format!("/generators/{generator}"), format!("read generator {generator}"));
        self.fetch_json(call, StatusCode::OK).await
    }

    /// Changes a generator.
    pub async fn update_generator(
        &self,
        generator: GeneratorId,
        changes: &UpdateGeneratorRequest,
    ) -> Result<Generator, ClientError> {
        let (path, operation) = (format!("/generators/{generator}"), format!("change generator {generator}"));
        self.fetch_json(Call::new(Method::PUT, path, operation).with_json(changes), StatusCode::OK).await
    }

    /// Replaces the key of a generator. The new key is in the response and cannot be read again.
    pub async fn rotate_generator_key(
        &self,
        generator: GeneratorId,
        request: &RotatePakRequest,
    ) -> Result<CreateGeneratorResponse, ClientError> {
        let operation = format!("replace the key of generator {generator}");
        let call = Call::new(Method::POST, format!("/generators/{generator}/rotate-pak"), operation);
        self.fetch_json(call.with_json(request), StatusCode::CREATED).await
    }

    /// Deletes a generator, its key and its stacks. Every agent that received the stacks removes them.
    pub async fn delete_generator(&self, generator: GeneratorId) -> Result<(), ClientError> {
        let (path, operation) = (format!("/generators/{generator}"), format!("delete generator {generator}"));
        self.send_expecting_no_content(Call::new(Method::DELETE, path, operation)).await
    }

    /// Lists the registrations of agents with a generator.
    pub async fn list_registrations(
        &self,
        generator: GeneratorId,
    ) -> Result<Vec<AgentGeneratorRegistration>, ClientError> {
        let operation = format!("list the agents of generator {generator}");
        self.fetch_list(&format!("/generators/{generator}/registered-agents"), &operation).await
    }

    /// Removes the registration of an agent with a generator.
    pub async fn unregister_agent(&self, generator: GeneratorId, agent: AgentId) -> Result<(), ClientError> {
        let operation = format!("remove the registration of agent {agent} with generator {generator}");
        let body = AgentRegistrationBody { agent_id: Some(agent) };
        let call = Call::new(Method::DELETE, format!("/generators/{generator}/register"), operation);
        self.send_expecting_no_content(call.with_json(&body)).await
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
