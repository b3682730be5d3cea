//! Status of stacks on clusters.

use http::{Method, StatusCode};
use sindri_model::wire::{StackStatus, StackStatusReport};
use sindri_model::{AgentId, StackId};

use crate::client::{Call, Client};
use crate::error::ClientError;

impl Client {
    /// Reports the status of a stack on an agent's cluster. Replaces the previous report. A broker that is not Sindri's
    /// does not receive it.
    pub async fn report_stack_status(
        &self,
        agent: AgentId,
        stack: StackId,
        report: &StackStatusReport,
    ) -> Result<(), ClientError> {
        let operation = format!("report the status of stack {stack} for agent {agent}");
        let call = Call::new(Method::PUT, format!("/agents/{agent}/stacks/{stack}/status"), operation);
        self.broker_kind.without_additions(self.send_expecting_no_content(call.with_json(report)).await)
    }

    /// Reads the last report of an agent about a stack; `None` if it has not reported about the stack.
    pub async fn get_reported_stack_status(
        &self,
        agent: AgentId,
        stack: StackId,
    ) -> Result<Option<StackStatusReport>, ClientError> {
        let operation = format!("read the reported status of stack {stack} for agent {agent}");
        let call = Call::get(format!("/agents/{agent}/stacks/{stack}/status"), operation);
        match self.fetch_json(call, StatusCode::OK).await {
            Ok(report) => Ok(Some(report)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the status of a stack on every cluster.
    pub async fn get_stack_status(&self, stack: StackId) -> Result<StackStatus, ClientError> {
        let operation = format!("read the status of stack {stack}");
        self.fetch_json(Call::get(format!("/stacks/{stack}/status"), operation), StatusCode::OK).await
    }
}
