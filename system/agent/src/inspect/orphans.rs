//! Objects with ownership annotations of a stack that is not in the agent's target state. They are only listed.

use std::collections::BTreeSet;

use sindri_client::TargetStateResponse;

use sindri_model::text::to_printable;

use crate::agent::{Agent, AgentError};
use crate::cluster::{Cluster, ClusterError};
use crate::pass::plan::describe_owner;

/// Returns one line for each orphaned object: its former stack, and its key.
pub async fn list_orphans(agent: &Agent) -> Result<Vec<String>, AgentError> {
    let id = agent.find_id().await.map_err(AgentError::Refused)?;
    let state = agent.broker.get_target_state(id, None).await.map_err(AgentError::Refused)?;
    let TargetStateResponse::Changed { objects, .. } = state else { return Ok(Vec::new()) };
    let stacks: BTreeSet<String> = objects.iter().map(|object| object.stack_id.to_string()).collect();
    find_orphans(&agent.cluster, &stacks).await.map_err(AgentError::Cluster)
}

async fn find_orphans(cluster: &Cluster, stacks: &BTreeSet<String>) -> Result<Vec<String>, ClusterError> {
    let (mut lines, mut seen_uids) = (BTreeSet::new(), BTreeSet::new());
    let types = cluster.list_resources().await?;
    // A type that cannot be listed gets a line, because it may have orphans.
    lines.extend(types.errors.iter().map(|error| format!("! {error}")));
    for resource in types.resources {
        let objects = match cluster.list_labelled(&resource).await {
            Ok((objects, _)) => objects,
            Err(error) => {
                lines.insert(format!("! {error}"));
                continue;
            }
        };
        for object in objects {
            let stack = object.ownership.stack.clone().unwrap_or_default();
            let is_original = object.ownership.object.as_deref() == Some(&object.key.to_string());
            // The same object is listed in every version of its group.
            if is_original && !stacks.contains(&stack) && seen_uids.insert(object.uid) {
                lines.insert(to_printable(&format!("stack {}: {}", describe_owner(&stack), object.key)));
            }
        }
    }
    Ok(lines.into_iter().collect())
}
