//! Objects of a stack that leaves clusters: the policy `sindri.dev/removal` of the stack deletes them or keeps them.

use sindri_model::policy::{PolicyValue, REMOVAL_ANNOTATION};
use sindri_model::wire::Stack;

use crate::failure::Failure;
use crate::session::Session;

/// Returns true if a removal of the stack keeps its objects in the clusters.
pub(crate) async fn keeps_objects(session: &Session, stack: &Stack) -> Result<bool, Failure> {
    let annotations = session.client.list_stack_annotations(stack.id).await?;
    let policy = annotations.iter().find(|annotation| annotation.key == REMOVAL_ANNOTATION);
    let policy = policy.map(|annotation| PolicyValue::parse(REMOVAL_ANNOTATION, &annotation.value));
    Ok(matches!(policy, Some(Ok(Some(PolicyValue::ReleasesOnRemoval(true))))))
}
