//! Saves the copy of the target state in the cluster after each change of the target state.

use std::convert::Infallible;

use sindri_model::AgentId;
use tokio::time::timeout;

use super::copy::{CopyChanges, CopyHeader, CopyLayout, read_layout, write_chunk};
use super::state::{LatestTargetState, WantedCopy};
use crate::cluster::{Cluster, ClusterError};
use crate::settings::Settings;

/// Saves the target state of one agent.
pub struct CopySaver<'a> {
    /// Client of the cluster.
    pub cluster: &'a Cluster,
    /// Id of the agent.
    pub agent: AgentId,
    /// Settings of the agent.
    pub settings: &'a Settings,
    /// Target state that is saved.
    pub target: &'a LatestTargetState,
}

impl CopySaver<'_> {
    /// Saves forever. An unchanged target state costs no request; after a failure the save is repeated with the next change,
    /// or after a polling interval.
    pub async fn run(&self) -> Infallible {
        let mut layout = None;
        loop {
            self.target.wait_for_change().await;
            while let Err(error) = self.save(&mut layout).await {
                tracing::warn!("the copy of the target state is not saved: {error}");
                layout = None;
                // A change before the end of the interval is saved at once.
                let _ = timeout(self.settings.polling_interval, self.target.wait_for_change()).await;
            }
        }
    }

    /// Saves the target state. `layout` is that of the Secrets; `None` until they were read.
    pub async fn save(&self, layout: &mut Option<CopyLayout>) -> Result<(), ClusterError> {
        match self.try_save(layout).await {
            // Another client changed a Secret, or the namespace does not exist yet.
            Err(error) if error.is_conflict() || error.is_not_found() => {
                *layout = None;
                self.cluster.ensure_agent_namespace().await?;
                self.try_save(layout).await
            }
            saved => saved,
        }
    }

    async fn try_save(&self, layout: &mut Option<CopyLayout>) -> Result<(), ClusterError> {
        let Some(wanted) = self.target.wanted_copy() else { return Ok(()) };
        let layout = match layout {
            Some(layout) => layout,
            None => layout.insert(read_layout(self.cluster).await?.0),
        };
        let CopyChanges { dirty, left_out } = match wanted {
            WantedCopy::Nothing => layout.clear(),
            WantedCopy::Stacks { epoch, content } => {
                let (name, cluster_name) = (self.settings.name.clone(), self.settings.cluster_name.clone());
                layout.update(CopyHeader { agent: self.agent, name, cluster_name, epoch }, &content)
            }
        };
        if !left_out.is_empty() {
            tracing::warn!("{} stacks do not fit in the copy of the target state", left_out.len());
        }
        for index in dirty {
            write_chunk(self.cluster, layout, index).await?;
        }
        Ok(())
    }
}
