//! Everything after a submission: its report, what depends on it, and the wait for the clusters.

use sindri_model::wire::Stack;

use super::submit::Submitted;
use crate::failure::Failure;
use crate::session::Session;
use crate::wait::{Wait, follow};

/// Reports a submission, runs `assign`, and waits if the arguments say so. People read about the submission before the wait; a
/// document is printed once, at the end, with the result of the wait, and also if a later step fails.
pub(crate) async fn finish(
    session: &Session,
    stack: &Stack,
    mut submitted: Submitted,
    sentence: &str,
    wait: &Wait,
    assign: impl AsyncFnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let is_for_people = session.output.format.is_for_people();
    if is_for_people {
        session.output.print_change(&submitted, sentence)?;
    }
    let mut result = assign().await.map_err(Failure::after_submission);
    if result.is_ok()
        && let Some(followed) = follow(session, stack, submitted.revision.sequence_id, wait).await?
    {
        submitted.outcome = Some(followed.outcome);
        result = followed.result;
    }
    if !is_for_people {
        session.output.print_change(&submitted, sentence)?;
    }
    result
}
