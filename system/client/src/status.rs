//! Status of stacks on clusters.

use http::{HeaderMap, Method, StatusCode};
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
        let path = format!("/stacks/{stack}/status");
        let mut status: Option<StackStatus> = None;
        let receive = |_: &HeaderMap, page: StackStatus| {
            match &mut status {
                None => status = Some(page),
                Some(status) => status.agents.extend(page.agents),
            }
            true
        };
        self.for_each_page(&path, String::new(), &operation, receive).await?;
        status.ok_or_else(|| Call::get(path, operation).malformed_response("there is no page"))
    }
}
