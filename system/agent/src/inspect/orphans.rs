//! What carries our marks and belongs to no stack that the broker speaks of. It is only told: whoever wants it gone says so.

use std::collections::BTreeSet;

use sindri_client::TargetState;

use crate::agent::{Agent, AgentError};
use crate::cluster::ClusterError;

impl Agent {
    /// One line for each object: the stack that it was of, and the object.
    pub async fn orphans(&self) -> Result<Vec<String>, AgentError> {
        let id = self.find().await?;
        let state = self.broker.target_state(id, None).await.map_err(AgentError::Refused)?;
        let TargetState::Changed { objects, .. } = state else { return Ok(Vec::new()) };
        let known: BTreeSet<String> = objects.iter().map(|object| object.stack_id.to_string()).collect();
        self.marked_by_others(&known).await.map_err(AgentError::Cluster)
    }

    async fn marked_by_others(&self, known: &BTreeSet<String>) -> Result<Vec<String>, ClusterError> {
        let (mut lines, mut seen) = (BTreeSet::new(), BTreeSet::new());
        for resource in self.cluster.listable_resources().await? {
            let listed = match self.cluster.marked(&resource).await {
                Ok((listed, _)) => listed,
                // A kind that cannot be listed is told too: nobody knows what is there.
                Err(error) => {
                    lines.insert(format!("! {error}"));
                    continue;
                }
            };
            for object in listed {
                let stack = object.marks.stack.clone().unwrap_or_default();
                let is_itself = object.marks.object.as_deref() == Some(&object.key.to_string());
                // The same object is served in every version of its group.
                if is_itself && !known.contains(&stack) && seen.insert(object.uid) {
                    lines.insert(format!("stack {stack}: {}", object.key));
                }
            }
        }
        Ok(lines.into_iter().collect())
    }
}
