//! Labels of agents and stacks, which assign stacks to agents, and annotations of stacks, which set policies.

use http::{HeaderMap, Method, StatusCode};
use sindri_model::wire::{
    AgentAnnotation, AgentLabel, AnnotationValue, NewAgentAnnotation, NewAgentLabel, NewStackAnnotation,
    StackAnnotation, StackLabel, StackPolicy, StackSuspension, SuspensionChange, TargetVersion,
};
use sindri_model::{AgentId, StackId};

use crate::client::{Call, Client};
use crate::error::ClientError;
use crate::percent_encode::percent_encode;
use crate::target_state::read_target_version;

/// Policies of an agent's stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentPolicies {
    /// Version of the target state to which they belong, if the broker tells it.
    pub version: Option<TargetVersion>,
    /// Policies of each stack that has any.
    pub policies: Vec<StackPolicy>,
}

impl Client {
    /// Adds a label to an agent.
    pub async fn label_agent(&self, agent: AgentId, label: &str) -> Result<AgentLabel, ClientError> {
        let operation = format!("label agent {agent}");
        let body = NewAgentLabel { agent_id: agent, label: label.to_owned() };
        let call = Call::new(Method::POST, format!("/agents/{agent}/labels"), operation).with_json(&body);
        self.fetch_json(call, StatusCode::CREATED).await
    }

    /// Removes a label from an agent. The agent then removes the stacks that it had by this label.
    pub async fn unlabel_agent(&self, agent: AgentId, label: &str) -> Result<(), ClientError> {
        let path = format!("/agents/{agent}/labels/{}", percent_encode(label));
        self.send_expecting_no_content(Call::new(Method::DELETE, path, format!("remove a label from agent {agent}")))
            .await
    }

    /// Lists the labels of an agent.
    pub async fn list_agent_labels(&self, agent: AgentId) -> Result<Vec<AgentLabel>, ClientError> {
        self.fetch_list(&format!("/agents/{agent}/labels"), &format!("list the labels of agent {agent}")).await
    }

    /// Adds an annotation to an agent.
    pub async fn annotate_agent(&self, agent: AgentId, key: &str, value: &str) -> Result<AgentAnnotation, ClientError> {
        let body = NewAgentAnnotation { agent_id: agent, key: key.to_owned(), value: value.to_owned() };
        let call = Call::new(Method::POST, format!("/agents/{agent}/annotations"), format!("annotate agent {agent}"));
        self.fetch_json(call.with_json(&body), StatusCode::CREATED).await
    }

    /// Adds an annotation to an agent, or replaces its value: stacks that match before and after stay assigned.
    pub async fn set_agent_annotation(
        &self,
        agent: AgentId,
        key: &str,
        value: &str,
    ) -> Result<AgentAnnotation, ClientError> {
        let path = format!("/agents/{agent}/annotations/{}", percent_encode(key));
        let call = Call::new(Method::PUT, path, format!("annotate agent {agent}"));
        self.fetch_json(call.with_json(&AnnotationValue { value: value.to_owned() }), StatusCode::OK).await
    }

    /// Removes an annotation from an agent.
    pub async fn remove_agent_annotation(&self, agent: AgentId, key: &str) -> Result<(), ClientError> {
        let path = format!("/agents/{agent}/annotations/{}", percent_encode(key));
        let operation = format!("remove an annotation from agent {agent}");
        self.send_expecting_no_content(Call::new(Method::DELETE, path, operation)).await
    }

    /// Lists the annotations of an agent.
    pub async fn list_agent_annotations(&self, agent: AgentId) -> Result<Vec<AgentAnnotation>, ClientError> {
        let operation = format!("list the annotations of agent {agent}");
        self.fetch_list(&format!("/agents/{agent}/annotations"), &operation).await
    }

    /// Lists the annotations of a stack.
    pub async fn list_stack_annotations(&self, stack: StackId) -> Result<Vec<StackAnnotation>, ClientError> {
        let operation = format!("list the annotations of stack {stack}");
        self.fetch_list(&format!("/stacks/{stack}/annotations"), &operation).await
    }

    /// Lists the labels of a stack.
    pub async fn list_stack_labels(&self, stack: StackId) -> Result<Vec<StackLabel>, ClientError> {
        self.fetch_list(&format!("/stacks/{stack}/labels"), &format!("list the labels of stack {stack}")).await
    }

    /// Removes a label from a stack. Agents that had the stack by this label remove it.
    pub async fn unlabel_stack(&self, stack: StackId, label: &str) -> Result<(), ClientError> {
        let path = format!("/stacks/{stack}/labels/{}", percent_encode(label));
        self.send_expecting_no_content(Call::new(Method::DELETE, path, format!("remove a label from stack {stack}")))
            .await
    }

    /// Adds an annotation to a stack.
    pub async fn annotate_stack(&self, stack: StackId, key: &str, value: &str) -> Result<StackAnnotation, ClientError> {
        let body = NewStackAnnotation { stack_id: stack, key: key.to_owned(), value: value.to_owned() };
        let call = Call::new(Method::POST, format!("/stacks/{stack}/annotations"), format!("annotate stack {stack}"));
        self.fetch_json(call.with_json(&body), StatusCode::CREATED).await
    }

    /// Adds an annotation to a stack, or replaces its value: a value that is rejected leaves the old one.
    pub async fn set_stack_annotation(
        &self,
        stack: StackId,
        key: &str,
        value: &str,
    ) -> Result<StackAnnotation, ClientError> {
        let path = format!("/stacks/{stack}/annotations/{}", percent_encode(key));
        let call = Call::new(Method::PUT, path, format!("annotate stack {stack}"));
        self.fetch_json(call.with_json(&AnnotationValue { value: value.to_owned() }), StatusCode::OK).await
    }

    /// Suspends a stack on the clusters of some agents, or writes it there again, in one step; returns all clusters on which it is
    /// suspended then.
    pub async fn change_stack_suspension(
        &self,
        stack: StackId,
        change: &SuspensionChange,
    ) -> Result<StackSuspension, ClientError> {
        let operation = format!("change the suspension of stack {stack}");
        let call = Call::new(Method::PATCH, format!("/stacks/{stack}/suspension"), operation).with_json(change);
        self.fetch_json(call, StatusCode::OK).await
    }

    /// Removes an annotation from a stack.
    pub async fn remove_stack_annotation(&self, stack: StackId, key: &str) -> Result<(), ClientError> {
        let path = format!("/stacks/{stack}/annotations/{}", percent_encode(key));
        self.send_expecting_no_content(Call::new(
            Method::DELETE,
            path,
            format!("remove an annotation from stack {stack}"),
        ))
        .await
    }

    /// Lists the policies of an agent's stacks: their annotations that begin with `sindri.dev/`. Stacks without any are
    /// left out. A broker that is not Sindri's has none.
    pub async fn list_policies(&self, agent: AgentId) -> Result<AgentPolicies, ClientError> {
        self.broker_kind.without_additions(self.fetch_policies(agent).await)
    }

    async fn fetch_policies(&self, agent: AgentId) -> Result<AgentPolicies, ClientError> {
        let operation = format!("list the policies of agent {agent}");
        let (mut version, mut policies) = (None, Vec::new());
        let receive = |headers: &HeaderMap, mut page| {
            // That of the last page: versions rise, so a caller that expects this one has no page of another.
            version = read_target_version(headers);
            policies.append(&mut page);
            true
        };
        self.for_each_page(&format!("/agents/{agent}/policies"), String::new(), &operation, receive).await?;
        Ok(AgentPolicies { version, policies })
    }

    /// Adds a label to a stack.
    pub async fn label_stack(&self, stack: StackId, label: &str) -> Result<StackLabel, ClientError> {
        let operation = format!("label stack {stack}");
        let call = Call::new(Method::POST, format!("/stacks/{stack}/labels"), operation).with_json(&label);
        self.fetch_json(call, StatusCode::CREATED).await
    }
}
