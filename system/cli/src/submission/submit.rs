//! The request that submits a bundle, which is safe to repeat, and its result for people and programs.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;
use sindri_model::wire::{Approval, ApprovalState, RevisionSummary, Stack};
use sindri_model::{AgentId, Checksum, RevisionId};
use tokio::time::sleep;

use crate::failure::Failure;
use crate::output::{Cell, Column, Resource};
use crate::session::Session;
use crate::traces::new_request;
use crate::wait::Outcome;

/// Attempts of one submission, all with the same idempotency key.
const ATTEMPTS_MAX: u32 = 4;
const PAUSE: Duration = Duration::from_secs(1);

/// Result of a submission.
#[derive(Serialize)]
pub(crate) struct Submitted {
    /// Name of the stack.
    pub stack: String,
    /// False if the stack had this content already, and nothing was submitted.
    pub changed: bool,
    /// The newest revision of the stack.
    pub revision: RevisionSummary,
    /// End of the wait for it, if there was one.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

impl Resource for Submitted {
    const KIND: &'static str = "stack";

    fn name(&self) -> String {
        self.stack.clone()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("STACK", |submitted: &Self| Cell::text(&submitted.stack)),
            Column::new("REVISION", |submitted: &Self| Cell::text(submitted.revision.number)),
        ]
    }
}

/// Submits a text, unless the newest revision of the stack has it already and `is_forced` is false.
pub(crate) async fn submit_text(
    session: &Session,
    stack: &Stack,
    text: &str,
    is_forced: bool,
) -> Result<Submitted, Failure> {
    let newest = session.client.list_history(stack.id, 1).await?.pop();
    let is_same =
        |revision: &RevisionSummary| !revision.is_deletion_marker && revision.yaml_checksum == Checksum::compute(text);
    let to_submitted = |changed, revision| Submitted { stack: stack.name.clone(), changed, revision, outcome: None };
    if let Some(revision) = newest.filter(|revision| !is_forced && is_same(revision))
        && !is_rejected(session, stack, revision.id).await?
    {
        return Ok(to_submitted(false, revision));
    }
    let submitted = submit_with_retries(session, stack, text).await?;
    // Other clients may have submitted meanwhile.
    let history = session.client.list_history(stack.id, 100).await.map_err(Failure::AfterSubmission)?;
    let revision = history.into_iter().find(|revision| revision.id == submitted);
    let missing = || Failure::Operation(format!("revision {submitted} of stack {} was deleted", stack.name));
    Ok(to_submitted(true, revision.ok_or_else(missing)?))
}

/// Returns true if a plan of the revision was rejected on a cluster that does not have it yet: the agent asks again only about a
/// new revision.
async fn is_rejected(session: &Session, stack: &Stack, revision: RevisionId) -> Result<bool, Failure> {
    let overview = session.client.get_overview(Some(stack.id)).await?;
    let assignments = overview.stacks.iter().flat_map(|stack| &stack.assignments);
    let waiting: BTreeSet<AgentId> =
        assignments.filter(|assignment| !assignment.state.is_done()).map(|assignment| assignment.agent_id).collect();
    if waiting.is_empty() {
        return Ok(false);
    }
    let rejected = session.client.list_approvals(Some(ApprovalState::Rejected)).await?;
    let concerns =
        |approval: &Approval| approval.deployment_object_id == revision && waiting.contains(&approval.agent_id);
    Ok(rejected.iter().any(concerns))
}

/// Sends the submission again with the same idempotency key if the response was lost or the broker was not available.
async fn submit_with_retries(session: &Session, stack: &Stack, text: &str) -> Result<RevisionId, Failure> {
    let id = new_request().id;
    let key = id.to_str().unwrap_or_default();
    let mut attempt = 1;
    loop {
        match session.client.submit_revision_once(stack.id, text, key).await {
            Ok(revision) => return Ok(revision.id),
            Err(error) if error.is_transient() && attempt < ATTEMPTS_MAX => sleep(PAUSE * attempt).await,
            Err(error) => return Err(error.into()),
        }
        attempt += 1;
    }
}

/// Describes the result of a submission.
pub(crate) fn describe(submitted: &Submitted, details: &str) -> String {
    let Submitted { stack, changed, revision, .. } = submitted;
    let verb = if *changed { "is at" } else { "is unchanged at" };
    format!("stack {stack} {verb} revision {}, sequence {}{details}", revision.number, revision.sequence_id)
}
