//! The question before a bundle without objects.

use sindri_model::wire::Stack;

use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::session::Session;
use crate::status::ClusterNames;

/// Asks before a bundle without objects is submitted to a stack that clusters have.
pub(crate) async fn confirm_empty(
    session: &Session,
    stack: &Stack,
    is_empty: bool,
    confirmation: &Confirmation,
) -> Result<(), Failure> {
    if !is_empty || !confirmation.is_asked() {
        return Ok(());
    }
    let overview = session.client.get_overview(Some(stack.id)).await?;
    let names = ClusterNames::new(&overview.agents);
    let assignments = overview.stacks.iter().flat_map(|stack| &stack.assignments);
    let clusters: Vec<String> = assignments
        .filter(|assignment| !assignment.is_removal)
        .map(|assignment| names.get(assignment.agent_id))
        .collect();
    if clusters.is_empty() {
        return Ok(());
    }
    let question = format!(
        "Submit no objects for stack {}? Every object of it is deleted on {}.",
        stack.name,
        clusters.join(", ")
    );
    confirmation.ask(session, &question)
}
