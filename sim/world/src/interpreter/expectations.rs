//! Checks the expectations of a scenario.

use std::time::Duration;

use serde_json::Value;
use sindri_model::wire::{AgentEvent, EventStatus};

use super::objects::parse_key;
use super::state::Interpreter;
use crate::declared_fields::has_declared_fields;
use crate::environment::StepError;
use crate::scenario::{
    EventCheck, Expectation, HeartbeatCheck, KubernetesEventCheck, ObjectCheck, RetryCheck, StateCheck, WritesCheck,
};
use crate::wall_clock::wall_time;

/// Waits are compared to the second: a request itself takes some time.
const TOLERANCE: Duration = Duration::from_millis(900);

fn mismatch(message: String) -> StepError {
    StepError::violation("expect", message)
}

impl Interpreter<'_> {
    pub(super) fn expect(&mut self, expectation: &Expectation) -> Result<(), StepError> {
        match expectation {
            Expectation::Object(check) => self.expect_object(check),
            Expectation::Absent(object) => match self.read_object(&object.cluster, &parse_key(&object.object)?)? {
                None => Ok(()),
                Some(_) => Err(mismatch(format!("{} exists in {} and should not", object.object, object.cluster))),
            },
            Expectation::Events(check) => self.expect_events(check),
            Expectation::KubernetesEvents(check) => self.expect_kubernetes_events(check),
            Expectation::Written(written) => self.expect_written(written),
            Expectation::Unwritten(written) => {
                let writes = self.environment.list_writes(&written.cluster)?;
                match written.writes.iter().find(|unwanted| writes.contains(unwanted)) {
                    None => Ok(()),
                    Some(found) => Err(mismatch(format!("the agent of {} made the write {found}", written.cluster))),
                }
            }
            Expectation::Condition(check) => {
                match self.find_condition_mismatch(&check.stack, &check.agent, &check.has)? {
                    None => Ok(()),
                    Some(missing) => Err(mismatch(format!("stack {} at {}: {missing}", check.stack, check.agent))),
                }
            }
            Expectation::State(check) => self.expect_state(check),
            Expectation::Heartbeat(check) => self.expect_heartbeat(check),
            Expectation::RequestCount(check) => {
                let count = self.environment.list_requests(&check.cluster, &check.requests)?.len();
                if (check.at_least..=check.at_most).contains(&count) {
                    return Ok(());
                }
                Err(mismatch(format!(
                    "the agent of {} made {count} requests that match {:?}",
                    check.cluster, check.requests
                )))
            }
            Expectation::Retried(retried) => self.expect_retried(retried),
        }
    }

    fn expect_state(&mut self, check: &StateCheck) -> Result<(), StepError> {
        let id = self.read_stack(&check.stack, |stack| stack.id)?;
        let state = self.ask_broker(move |client| async move { client.get_stack_status(id).await })?.state;
        if state == check.is {
            return Ok(());
        }
        Err(mismatch(format!("stack {} is {state}, not {}", check.stack, check.is)))
    }

    fn expect_object(&mut self, check: &ObjectCheck) -> Result<(), StepError> {
        let (cluster, object) = (&check.cluster, &check.object);
        match self.read_object(cluster, &parse_key(object)?)? {
            None => Err(mismatch(format!("{object} is not in {cluster}"))),
            Some(live) if check.has.is_null() || has_declared_fields(&live, &check.has) => {
                match check.lacks.iter().find(|pointer| live.pointer(pointer).is_some()) {
                    None => Ok(()),
                    Some(pointer) => Err(mismatch(format!("{object} in {cluster} has {pointer}; it is {live}"))),
                }
            }
            Some(live) => Err(mismatch(format!("{object} in {cluster} does not have {}; it is {live}", check.has))),
        }
    }

    /// Lists the events of a stack, each with true if it is about a removal.
    fn list_events(&mut self, stack: &str, agent: Option<&str>) -> Result<Vec<(AgentEvent, bool)>, StepError> {
        let agents: Vec<String> = match agent {
            Some(agent) => vec![agent.to_owned()],
            None => self.expected.borrow().agents.keys().cloned().collect(),
        };
        let id = self.read_stack(stack, |stack| stack.id)?;
        let mut found = Vec::new();
        for agent in agents {
            let agent = self.agent_id(&agent)?;
            let events = self.ask_broker(move |client| async move {
                let mut found = Vec::new();
                for event in client.list_events(agent).await? {
                    let revision = client.get_revision(event.deployment_object_id).await?;
                    if revision.stack_id == id {
                        found.push((event, revision.is_deletion_marker));
                    }
                }
                Ok(found)
            })?;
            found.extend(events);
        }
        Ok(found)
    }

    fn expect_events(&mut self, check: &EventCheck) -> Result<(), StepError> {
        let status = match check.status.as_str() {
            "SUCCESS" => EventStatus::Success,
            "FAILURE" => EventStatus::Failure,
            other => return Err(StepError::Failed(format!("status is SUCCESS or FAILURE, not {other:?}"))),
        };
        let events = self.list_events(&check.stack, check.agent.as_deref())?;
        let matches = |event: &AgentEvent, is_removal: bool| {
            let message = event.message.as_deref().unwrap_or_default();
            event.status == status
                && check.deleted.is_none_or(|deleted| deleted == is_removal)
                && check.message_has.iter().all(|text| message.contains(text))
        };
        let count = events.iter().filter(|(event, is_removal)| matches(event, *is_removal)).count();
        if check.count.includes(count) {
            return Ok(());
        }
        let seen: Vec<String> = events
            .iter()
            .map(|(event, is_removal)| {
                let about = if *is_removal { "removal" } else { "revision" };
                format!("{about} {:?} {}", event.status, event.message.as_deref().unwrap_or_default())
            })
            .collect();
        Err(mismatch(format!("{count} events match {check:?}; all events: {seen:#?}")))
    }

    fn expect_kubernetes_events(&mut self, check: &KubernetesEventCheck) -> Result<(), StepError> {
        let key = parse_key(&check.about)?;
        // Those about objects without a namespace are in the default one.
        let namespace = key.namespace.as_deref().unwrap_or("default");
        let (_, list) = self.get(&check.cluster, &format!("/api/v1/namespaces/{namespace}/events"))?;
        let events = list["items"].as_array().cloned().unwrap_or_default();
        let is_about = |event: &&Value| {
            let about = &event["involvedObject"];
            about["kind"] == *key.kind
                && about["name"] == *key.name
                && about["namespace"].as_str() == key.namespace.as_deref()
        };
        let matches = |event: &&Value| {
            let message = event["message"].as_str().unwrap_or_default();
            event["reason"] == *check.reason && check.message_has.iter().all(|text| message.contains(text))
        };
        let about: Vec<&Value> = events.iter().filter(is_about).collect();
        let count = about.iter().filter(|event| matches(event)).count();
        if check.count.includes(count) {
            return Ok(());
        }
        let seen: Vec<String> =
            about.iter().map(|event| format!("{}: {}", event["reason"], event["message"])).collect();
        Err(mismatch(format!("{count} Kubernetes Events match {check:?}; all about the object: {seen:#?}")))
    }

    fn expect_written(&mut self, written: &WritesCheck) -> Result<(), StepError> {
        let writes = self.environment.list_writes(&written.cluster)?;
        let mut rest = writes.iter();
        for expected in &written.writes {
            if !rest.any(|write| write == expected) {
                return Err(mismatch(format!(
                    "the agent of {} did not make the write {expected} in this order; its writes: {writes:#?}",
                    written.cluster
                )));
            }
        }
        Ok(())
    }

    fn expect_heartbeat(&mut self, check: &HeartbeatCheck) -> Result<(), StepError> {
        let id = self.agent_id(&check.agent)?;
        let agent = self.ask_broker(move |client| async move { client.get_agent(id).await })?;
        let now = wall_time();
        let ago = agent.last_heartbeat.and_then(|last| Duration::try_from(now.duration_since(last)).ok());
        match ago {
            Some(ago) if ago <= check.within.0 => Ok(()),
            _ => Err(mismatch(format!("the last heartbeat of {} was {ago:?} ago", check.agent))),
        }
    }

    fn expect_retried(&mut self, retried: &RetryCheck) -> Result<(), StepError> {
        let requests = self.environment.list_requests(&retried.cluster, &retried.requests)?;
        let waits: Vec<Duration> = requests.windows(2).map(|pair| pair[1].at.saturating_sub(pair[0].at)).collect();
        let fits = waits.len() >= retried.waits.len()
            && retried.waits.iter().zip(&waits).all(|(wanted, wait)| *wait >= wanted.0 && *wait < wanted.0 + TOLERANCE);
        if fits {
            return Ok(());
        }
        Err(mismatch(format!(
            "requests that match {:?} came after waits of {waits:?}, not {:?}",
            retried.requests, retried.waits
        )))
    }
}
