//! Preview of the next pass of each stack. Writes nothing.

use std::fmt::Write as _;
use std::sync::Arc;

use sindri_client::TargetStateResponse;

use crate::agent::{Agent, AgentError};
use crate::cluster::reflector::Reflector;
use crate::preview::preview_stack;
use crate::target::claims::Claims;
use crate::target::policy::EffectivePolicy;
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
    let mut claims =
        Claims::new(agent.cluster.default_namespace()).with_agent_name(&agent.settings.name).with_version(version);
    revisions.iter().for_each(|revision| claims.add_revision(revision));
    policies.values().for_each(|policy| claims.add_policy(policy));
    let claims = Arc::new(claims);
    // A reflector that does not run has no current types, so every type is listed.
    let reflector = Reflector::default();
    let mut text = String::new();
    for revision in &revisions {
        let policy = policies.get(&revision.stack_id);
        let annotations = policy.map(|policy| policy.annotations.clone()).unwrap_or_default();
        let policy = EffectivePolicy::from_annotations(&agent.settings, &annotations);
        let removal = if revision.is_deletion_marker { ", to be removed" } else { "" };
        let preview = preview_stack(&agent.cluster, &reflector, revision, &claims, &policy).await.text;
        let (stack, sequence) = (claims.name(revision.stack_id), revision.sequence_id);
        write!(text, "stack {stack} at sequence {sequence}{removal}\n{preview}\n")
            .expect("writing to a string cannot fail");
    }
    Ok(text)
}
