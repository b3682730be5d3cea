//! Preview of the next pass of each stack, with the fields that it would change. Writes nothing.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;
use sindri_client::TargetStateResponse;

use super::diff::diff;
use crate::agent::{Agent, AgentError};
use crate::cluster::Cluster;
use crate::cluster::reflector::Reflector;
use crate::pass::content::ContentSearch;
use crate::pass::ignored_values::copy_ignored_fields;
use crate::pass::inventory::load_inventory;
use crate::pass::observe::{Observation, read_live_objects};
use crate::pass::plan::{
    Hold, PlanInputs, Write, find_adoption, find_excess, find_single_holds, make_plan, render_plan,
};
use crate::pass::resolve::{ResolveError, resolve_bundle};
use crate::pass::summary::PassError;
use crate::target::claims::Claims;
use crate::target::policy::StackPolicy;
use crate::target::poller::by_stack;
use crate::target::revision::Revision;

/// Returns one paragraph for each stack.
pub async fn preview_passes(agent: &Agent) -> Result<String, AgentError> {
    let id = agent.find_id().await.map_err(AgentError::Refused)?;
    let state = agent.broker.get_target_state(id, None).await.map_err(AgentError::Refused)?;
    let policies = by_stack(agent.broker.list_policies(id).await.map_err(AgentError::Refused)?);
    let TargetStateResponse::Changed { objects, version, .. } = state else { return Ok(String::new()) };
    let revisions: Vec<Revision> = objects.into_iter().map(Revision::from_wire).collect();
    let version = version.map(|version| version.state);
    let mut claims = Claims::new(agent.cluster.default_namespace()).of_agent(&agent.settings.name).of_version(version);
    revisions.iter().for_each(|revision| claims.add(revision.stack_id, revision.sequence_id, &revision.declared));
    policies.values().for_each(|policy| claims.add_policy(policy));
    let claims = Arc::new(claims);
    let mut text = String::new();
    for revision in &revisions {
        let policy = policies.get(&revision.stack_id);
        let annotations = policy.map(|policy| policy.annotations.clone()).unwrap_or_default();
        let policy = StackPolicy::from_annotations(&agent.settings, &annotations);
        let removal = if revision.is_deletion_marker { ", to be removed" } else { "" };
        let preview = preview_stack(&agent.cluster, revision, &claims, &policy).await;
        let preview = preview.unwrap_or_else(|error| format!("! {error}\n"));
        let preview = if preview.is_empty() { "= nothing to do\n".to_owned() } else { preview };
        let (stack, sequence) = (revision.stack_id, revision.sequence_id);
        write!(text, "stack {stack} at sequence {sequence}{removal}\n{preview}\n")
            .expect("writing to a string cannot fail");
    }
    Ok(text)
}

async fn preview_stack(
    cluster: &Cluster,
    revision: &Revision,
    claims: &Arc<Claims>,
    policy: &StackPolicy,
) -> Result<String, PassError> {
    let problems = policy.find_problems(revision.is_deletion_marker);
    if !problems.is_empty() {
        return Err(PassError::Policy(problems));
    }
    let (inventory, _) = load_inventory(cluster, revision.stack_id).await?;
    let bundle = revision.take_bundle().map_err(ResolveError::Bundle)?;
    let desired = resolve_bundle(cluster, revision, bundle, &policy.ignore).await?;
    // A reflector that does not run has no current types, so every type is listed.
    let Observation { live, unreadable } =
        read_live_objects(cluster, &Reflector::default(), &desired, &inventory).await;
    let (inventory, live, drift) = (&inventory, &live, policy.drift);
    let inputs = PlanInputs {
        inventory,
        live,
        unreadable: &unreadable,
        last_applied: None,
        claims,
        drift,
        releases_all: policy.releases_on_removal,
        is_impersonated: policy.service_account.is_some(),
        ready: None,
    };
    let mut plan = make_plan(&desired, inputs)?;
    copy_ignored_fields(cluster, &mut plan.writes).await?;
    let mut changes = Vec::new();
    let mut unchanged = 0;
    for write in &plan.writes {
        let lines = find_changes(cluster, write).await;
        unchanged += usize::from(lines.is_empty());
        changes.push((write.object.key.clone(), lines));
    }
    plan.writes.retain(|write| changes.iter().any(|(key, lines)| *key == write.object.key && !lines.is_empty()));
    let search = ContentSearch { cluster, stack: desired.stack, inventory, claims: &|| claims.clone() };
    let foreign = search.find_all_foreign(&plan).await;
    let excess = find_excess(&plan, inputs, &desired, &policy.brake);
    let holds = find_adoption(&plan).into_iter().chain(excess);
    let holds: Vec<Hold> = holds.chain(find_single_holds(&plan, &foreign, &policy.brake)).collect();
    let mut text = String::new();
    for line in render_plan(&plan, inventory, live, &holds, usize::MAX).lines() {
        text.push_str(&format!("{line}\n"));
        let of_line = changes.iter().find(|(key, _)| line[2..].split("  (").next() == Some(&key.to_string()));
        of_line.into_iter().flat_map(|(_, lines)| lines).for_each(|line| text.push_str(&format!("    {line}\n")));
    }
    for error in unreadable.into_errors() {
        text.push_str(&format!("! {error}\n"));
    }
    if unchanged > 0 {
        text.push_str(&format!("= {unchanged} objects are unchanged\n"));
    }
    Ok(text)
}

/// Returns the fields that an apply would change, or the error of the server.
async fn find_changes(cluster: &Cluster, write: &Write) -> Vec<String> {
    let object = &write.object;
    let before = cluster.get(&object.resource, &object.key).await;
    let after = cluster.dry_run_apply(&object.to_patch(None)).await;
    match (before, after) {
        (Ok(before), Ok(after)) => diff(&object.key, &before.unwrap_or(Value::Null), &after),
        (Err(error), _) | (_, Err(error)) => vec![format!("! {error}")],
    }
}
