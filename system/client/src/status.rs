//! How stacks are on clusters: said by agents, read by whoever wants to know.

use http::{Method, StatusCode};
use sindri_model::wire::{StackStatus, StackStatusReport};
use sindri_model::{AgentId, StackId};

use crate::client::{Call, Client};
use crate::error::ClientError;

impl Client {
    /// Says how a stack is on the agent's cluster, in place of what it said before.
    pub async fn put_stack_status(
        &self,
        agent: AgentId,
        stack: StackId,
        report: &StackStatusReport,
    ) -> Result<(), ClientError> {
        let operation = format!("say how stack {stack} is at agent {agent}");
        let call = Call::new(Method::PUT, format!("/agents/{agent}/stacks/{stack}/status"), operation);
        self.execute(call.with_json(report)).await
    }

    /// How a stack is on every cluster.
    pub async fn stack_status(&self, stack: StackId) -> Result<StackStatus, ClientError> {
        let operation = format!("read the status of stack {stack}");
        self.fetch(Call::get(format!("/stacks/{stack}/status"), operation), StatusCode::OK).await
    }
}
