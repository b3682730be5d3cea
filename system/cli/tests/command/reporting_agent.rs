//! An agent that reports through the client as a test requires.

use hyper_util::client::legacy::connect::HttpConnector;
use sindri_client::{Client, TargetStateResponse};
use sindri_model::wire::{
    ApprovalRequest, ConditionStatus, EVENT_TYPE_DEPLOY, EventStatus, NewAgentEvent, ReportedCondition,
    StackStatusReport, condition,
};
use tokio::runtime::Runtime;

use crate::support::{BUNDLE, Broker};

/// An agent that changes nothing and reports as the test requires.
pub struct Agent {
    runtime: Runtime,
    client: Client,
}

impl Agent {
    /// Creates an agent with the stack `web` in its target state.
    pub fn with_stack(broker: &Broker) -> Self {
        let created = broker.run_successfully(&["agent", "create", "east", "--cluster", "prod"]);
        broker.run_successfully(&["stack", "create", "web"]);
        broker.run_successfully(&["target", "web", "east"]);
        let file = broker.write_file("web.yaml", BUNDLE);
        broker.run_successfully(&["apply", "web", "-f", file.to_str().unwrap()]);
        Self::new(&broker.address, created.rsplit(' ').next().unwrap().trim())
    }

    pub fn new(address: &str, key: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = Client::new(HttpConnector::new(), address.parse().unwrap(), key).unwrap();
        Self { runtime, client }
    }

    /// Polls, requests an approval for its only stack, and returns the id of the approval.
    pub fn request_approval(&self, reason: &str, plan: &str) -> String {
        self.runtime.block_on(async {
            let id = self.client.whoami().await.unwrap().agent.unwrap();
            let TargetStateResponse::Changed { objects, .. } = self.client.get_target_state(id, None).await.unwrap()
            else {
                panic!("the target state is unchanged although no ETag was sent");
            };
            let (stack, deployment_object_id) = (objects[0].stack_id, objects[0].id);
            let (digest, plan) = ("a".repeat(64), plan.to_owned());
            let request = ApprovalRequest { deployment_object_id, digest, reasons: vec![reason.to_owned()], plan };
            let approval = self.client.request_approval(id, stack, &request).await.unwrap();
            let blocked = ReportedCondition {
                kind: condition::BLOCKED.to_owned(),
                status: ConditionStatus::True,
                reason: "TooMuch".to_owned(),
                message: reason.to_owned(),
            };
            let report = StackStatusReport { deployment_object_id, conditions: vec![blocked] };
            self.client.report_stack_status(id, stack, &report).await.unwrap();
            approval.id.to_string()
        })
    }

    /// Polls, and reports an outcome for its only stack.
    pub fn report(&self, status: EventStatus, message: Option<&str>) {
        self.runtime.block_on(async {
            let id = self.client.whoami().await.unwrap().agent.unwrap();
            let TargetStateResponse::Changed { objects, .. } = self.client.get_target_state(id, None).await.unwrap()
            else {
                panic!("the target state is unchanged although no ETag was sent");
            };
            let [object] = &objects[..] else { panic!("{objects:?}") };
            let event = NewAgentEvent {
                agent_id: id,
                deployment_object_id: object.id,
                event_type: EVENT_TYPE_DEPLOY.to_owned(),
                status,
                message: message.map(str::to_owned),
            };
            self.client.report_outcome(&event, &format!("{}-{}", object.id, event.status)).await.unwrap();
        });
    }
}
