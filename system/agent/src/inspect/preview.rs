//! What a pass of each stack would do, with what it would change in each object. Nothing is written.

use std::fmt::Write as _;

use serde_json::Value;
use sindri_client::TargetState;

use super::diff::diff;
use crate::agent::{Agent, AgentError};
use crate::cluster::reflector::Watches;
use crate::pass::inventory::{self, Position};
use crate::pass::observe::{self, ObserveError};
use crate::pass::plan::{Observed, Write, plan};
use crate::pass::run::PassError;
use crate::target::claims::Claims;
use crate::target::policy::Policy;
use crate::target::revision::Revision;

impl Agent {
    /// One paragraph for each stack.
    pub async fn preview(&self) -> Result<String, AgentError> {
        let id = self.find().await?;
        let state = self.broker.target_state(id, None).await.map_err(AgentError::Refused)?;
        let policies = self.policies(id).await.map_err(AgentError::Refused)?;
        let TargetState::Changed { objects, .. } = state else { return Ok(String::new()) };
        let objects: Vec<Revision> = objects.into_iter().map(Revision::read).collect();
        let mut claims = self.cluster.no_claims();
        objects.iter().for_each(|object| claims.add(object.stack_id, object.sequence_id, &object.declared));
        let mut text = String::new();
        for object in &objects {
            let annotations = policies.get(&object.stack_id).cloned().unwrap_or_default();
            let (policy, _) = Policy::of(&self.settings, &annotations);
            let removal = if object.is_deletion_marker { ", to be removed" } else { "" };
            let shown = self.preview_stack(object, &claims, &policy).await;
            let shown = shown.unwrap_or_else(|error| format!("! {error}\n"));
            let shown = if shown.is_empty() { "= nothing to do\n".to_owned() } else { shown };
            let (stack, sequence) = (object.stack_id, object.sequence_id);
            write!(text, "stack {stack} at sequence {sequence}{removal}\n{shown}\n")
                .expect("a string takes every line");
        }
        Ok(text)
    }

    async fn preview_stack(&self, object: &Revision, claims: &Claims, policy: &Policy) -> Result<String, PassError> {
        let inventory = inventory::load(&self.cluster, object.stack_id).await?;
        let position = Position { epoch: object.sequence_id.epoch(), sequence: object.sequence_id };
        let bundle = object.bundle().map_err(ObserveError::Bundle)?;
        let desired = observe::desired(&self.cluster, object, bundle, position, &policy.ignore).await?;
        // Nobody watches here: everything is listed.
        let live = observe::live(&self.cluster, &Watches::default(), &desired, &inventory).await?;
        let observed = Observed { inventory: &inventory, live: &live, settled: None, claims, drift: policy.drift };
        let mut plan = plan(&desired, observed)?;
        observe::keep_ignored(&self.cluster, &mut plan.writes).await?;
        let mut changes = Vec::new();
        let mut unchanged = 0;
        for write in &plan.writes {
            let lines = self.changes(write).await;
            unchanged += usize::from(lines.is_empty());
            changes.push((write.object.key.clone(), lines));
        }
        plan.writes.retain(|write| changes.iter().any(|(key, lines)| *key == write.object.key && !lines.is_empty()));
        let held = self.holds(&desired, &inventory, &plan, policy).await;
        let mut text = String::new();
        for line in plan.shown(&inventory, &live, &held).lines() {
            text.push_str(&format!("{line}\n"));
            let of_line = changes.iter().find(|(key, _)| line[2..].split("  (").next() == Some(&key.to_string()));
            of_line.into_iter().flat_map(|(_, lines)| lines).for_each(|line| text.push_str(&format!("    {line}\n")));
        }
        if unchanged > 0 {
            text.push_str(&format!("= {unchanged} objects are as they are declared\n"));
        }
        Ok(text)
    }

    /// What an apply would change; what the server says against it, if it refuses.
    async fn changes(&self, write: &Write) -> Vec<String> {
        let object = &write.object;
        let before = self.cluster.read(&object.resource, &object.key).await;
        let after = self.cluster.preview(&object.patch()).await;
        match (before, after) {
            (Ok(before), Ok(after)) => diff(&object.key, &before.unwrap_or(Value::Null), &after),
            (Err(error), _) | (_, Err(error)) => vec![format!("! {error}")],
        }
    }
}
