//! An agent that reports through the client as a test requires.

use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use sindri_client::{Client, TargetStateResponse};
use sindri_model::wire::{
    ApprovalRequest, ConditionStatus, EVENT_TYPE_DEPLOY, EventStatus, HeartbeatReport, NewAgentEvent, PlanReport,
    ReportedCondition, StackStatusReport, condition,
};
use tokio::runtime::Runtime;

use crate::support::{BUNDLE, Broker};

/// Polls for a revision, twenty in a second.
const ATTEMPTS_MAX: u32 = 400;

fn parse_condition(text: &str) -> ReportedCondition {
    let mut words = text[1..].splitn(3, ' ').map(str::to_owned);
    let status = if text.starts_with('+') { ConditionStatus::True } else { ConditionStatus::False };
    let (kind, reason) = (words.next().unwrap(), words.next().unwrap_or_default());
    ReportedCondition { kind, status, reason, message: words.next().unwrap_or_default() }
}

/// An agent that changes nothing and reports as the test requires.
pub struct Agent {
    runtime: Runtime,
    client: Client,
}

impl Agent {
    /// Creates an agent with the stack `web` in its target state.
    pub fn with_stack(broker: &Broker) -> Self {
        let agent = Self::active(broker, "east", "prod");
        let file = broker.write_file("web.yaml", BUNDLE);
        let file = file.to_str().unwrap();
        broker.run_successfully(&["apply", "web", "-f", file, "--create", "--target", "east"]);
        agent
    }

    /// Creates an active agent whose heartbeats arrive.
    pub fn active(broker: &Broker, name: &str, cluster: &str) -> Self {
        let created = broker.run_successfully(&["agent", "create", name, "--cluster", cluster]);
        broker.run_successfully(&["agent", "activate", name]);
        let agent = Self::new(&broker.address, created.rsplit(' ').next().unwrap().trim());
        agent.runtime.block_on(async {
            let id = agent.client.whoami().await.unwrap().agent.unwrap();
            agent.client.send_heartbeat(id, &HeartbeatReport::default()).await.unwrap();
        });
        agent
    }

    /// Waits until its only stack is at another sequence than this one, and reports conditions about that revision: `+Ready`, or
    /// `-Applied Failed no room`.
    pub fn report_conditions(&self, after: i64, conditions: &[&str]) -> i64 {
        self.runtime.block_on(async {
            let id = self.client.whoami().await.unwrap().agent.unwrap();
            for _ in 0..ATTEMPTS_MAX {
                if let TargetStateResponse::Changed { objects, .. } =
                    self.client.get_target_state(id, None).await.unwrap()
                    && let Some(object) = objects.iter().find(|object| object.sequence_id.0 > after)
                {
                    let conditions = conditions.iter().map(|text| parse_condition(text)).collect();
                    let report = StackStatusReport { deployment_object_id: object.id, conditions };
                    self.client.report_stack_status(id, object.stack_id, &report).await.unwrap();
                    return object.sequence_id.0;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            panic!("there is no revision after {after}");
        })
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

    /// Waits for a proposal, and reports a plan for it.
    pub fn report_plan(&self, failed: bool, changes: bool, plan: &str) {
        self.runtime.block_on(async {
            let id = self.client.whoami().await.unwrap().agent.unwrap();
            for _ in 0..ATTEMPTS_MAX {
                if let Some(proposal) = self.client.list_proposals(id).await.unwrap().first() {
                    let report = PlanReport { failed, changes, plan: plan.to_owned() };
                    return self.client.report_plan(id, proposal.id, &report).await.unwrap();
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            panic!("there is no proposal");
        });
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
