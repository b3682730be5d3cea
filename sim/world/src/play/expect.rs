//! Checking what a story expects.

use std::time::Duration;

use sindri_model::wire::{AgentEvent, EventStatus};

use super::Play;
use super::objects::parse_key;
use crate::oracle::holds;
use crate::scenario::{Count, EventCheck, Expectation, HeartbeatCheck, ObjectCheck, Retried, StateCheck, Written};
use crate::stage::Trouble;

/// Waits are compared to the second: a request takes some time by itself.
const TOLERANCE: Duration = Duration::from_millis(900);

fn unmet(message: String) -> Trouble {
    Trouble::violation("expect", message)
}

impl Play<'_> {
    pub(super) fn expect(&mut self, expectation: &Expectation) -> Result<(), Trouble> {
        match expectation {
            Expectation::Object(check) => self.expect_object(check),
            Expectation::Absent(object) => match self.read_object(&object.cluster, &parse_key(&object.object)?)? {
                None => Ok(()),
                Some(_) => Err(unmet(format!("{} is in {} and should not be", object.object, object.cluster))),
            },
            Expectation::Events(check) => self.expect_events(check),
            Expectation::Written(written) => self.expect_written(written),
            Expectation::Unwritten(written) => {
                let writes = self.stage.written(&written.cluster)?;
                match written.writes.iter().find(|unwanted| writes.contains(unwanted)) {
                    None => Ok(()),
                    Some(found) => Err(unmet(format!("the agent of {} did: {found}", written.cluster))),
                }
            }
            Expectation::Condition(check) => match self.unsaid(&check.stack, &check.agent, &check.said)? {
                None => Ok(()),
                Some(missing) => Err(unmet(format!("stack {} at {}: {missing}", check.stack, check.agent))),
            },
            Expectation::State(check) => self.expect_state(check),
            Expectation::Heartbeat(check) => self.expect_heartbeat(check),
            Expectation::Asked(check) => {
                let count = self.stage.asked(&check.cluster, &check.requests)?.len();
                if (check.at_least..=check.at_most).contains(&count) {
                    return Ok(());
                }
                Err(unmet(format!("the agent of {} asked {count} times: {}", check.cluster, check.requests)))
            }
            Expectation::Retried(retried) => self.expect_retried(retried),
        }
    }

    fn expect_state(&mut self, check: &StateCheck) -> Result<(), Trouble> {
        let id = self.stack(&check.stack, |stack| stack.id)?;
        let state = self.ask(move |client| async move { client.stack_status(id).await })?.state;
        if state == check.is {
            return Ok(());
        }
        Err(unmet(format!("stack {} is {state}, not {}", check.stack, check.is)))
    }

    fn expect_object(&mut self, check: &ObjectCheck) -> Result<(), Trouble> {
        let (cluster, object) = (&check.cluster, &check.object);
        match self.read_object(cluster, &parse_key(object)?)? {
            None => Err(unmet(format!("{object} is not in {cluster}"))),
            Some(live) if check.has.is_null() || holds(&live, &check.has) => Ok(()),
            Some(live) => Err(unmet(format!("{object} of {cluster} does not have {}: it is {live}", check.has))),
        }
    }

    /// Every event of a stack, with whether it is about a removal.
    fn events_of(&mut self, stack: &str, agent: Option<&str>) -> Result<Vec<(AgentEvent, bool)>, Trouble> {
        let agents: Vec<String> = match agent {
            Some(agent) => vec![agent.to_owned()],
            None => self.ledger.borrow().agents.keys().cloned().collect(),
        };
        let id = self.stack(stack, |stack| stack.id)?;
        let mut found = Vec::new();
        for agent in agents {
            let agent = self.agent(&agent)?;
            let events = self.ask(move |client| async move {
                let mut found = Vec::new();
                for event in client.events(agent).await? {
                    let revision = client.revision(event.deployment_object_id).await?;
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

    fn expect_events(&mut self, check: &EventCheck) -> Result<(), Trouble> {
        let status = match check.status.as_str() {
            "SUCCESS" => EventStatus::Success,
            "FAILURE" => EventStatus::Failure,
            other => return Err(Trouble::Broken(format!("status is SUCCESS or FAILURE, not {other:?}"))),
        };
        let events = self.events_of(&check.stack, check.agent.as_deref())?;
        let fits = |event: &AgentEvent, removal: bool| {
            let message = event.message.as_deref().unwrap_or_default();
            event.status == status
                && check.deleted.is_none_or(|wanted| wanted == removal)
                && check.message_has.iter().all(|text| message.contains(text))
        };
        let count = events.iter().filter(|(event, removal)| fits(event, *removal)).count();
        let enough = match check.count {
            Count::Exactly(wanted) => count == wanted,
            Count::AtLeast { at_least } => count >= at_least,
        };
        if enough {
            return Ok(());
        }
        let seen: Vec<String> = events
            .iter()
            .map(|(event, removal)| {
                let what = if *removal { "removal" } else { "revision" };
                format!("{what} {:?} {}", event.status, event.message.as_deref().unwrap_or_default())
            })
            .collect();
        Err(unmet(format!("{count} events fit {check:?}; all events: {seen:#?}")))
    }

    fn expect_written(&mut self, written: &Written) -> Result<(), Trouble> {
        let writes = self.stage.written(&written.cluster)?;
        let mut rest = writes.iter();
        for wanted in &written.writes {
            if !rest.any(|write| write == wanted) {
                return Err(unmet(format!(
                    "the agent of {} did not {wanted:?} in this order; it did: {writes:#?}",
                    written.cluster
                )));
            }
        }
        Ok(())
    }

    fn expect_heartbeat(&mut self, check: &HeartbeatCheck) -> Result<(), Trouble> {
        let id = self.agent(&check.agent)?;
        let agent = self.ask(move |client| async move { client.agent(id).await })?;
        let now = crate::hosts::wall_time();
        let ago = agent.last_heartbeat.and_then(|last| Duration::try_from(now.duration_since(last)).ok());
        match ago {
            Some(ago) if ago <= check.within.0 => Ok(()),
            _ => Err(unmet(format!("the last heartbeat of {} came {ago:?} ago", check.agent))),
        }
    }

    fn expect_retried(&mut self, retried: &Retried) -> Result<(), Trouble> {
        let asked = self.stage.asked(&retried.cluster, &retried.requests)?;
        let waits: Vec<Duration> = asked.windows(2).map(|pair| pair[1].at.saturating_sub(pair[0].at)).collect();
        let fits = waits.len() >= retried.waits.len()
            && retried.waits.iter().zip(&waits).all(|(wanted, wait)| *wait >= wanted.0 && *wait < wanted.0 + TOLERANCE);
        if fits {
            return Ok(());
        }
        Err(unmet(format!("{:?} came with waits of {waits:?}, not {:?}", retried.requests, retried.waits)))
    }
}
