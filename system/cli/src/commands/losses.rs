//! Assignments that a change of labels, annotations or registrations would end, for the question before it.
//!
//! An explicit target keeps its assignment. Objects that the key may not read count as lost.

use sindri_model::wire::{Agent, AgentTarget, Stack, StackOverview};
use sindri_model::{AgentId, StackId};

use crate::commands::labels::accept_forbidden;
use crate::failure::Failure;
use crate::session::Session;
use crate::status::ClusterNames;

/// Assignments of which each is examined; with more, all count as lost.
const EXAMINED_MAX: usize = 50;
/// Names in a question.
const NAMES_MAX: usize = 5;

/// Returns the clusters that would lose a stack if its labels or annotations for which `is_matching` holds were removed.
pub(crate) async fn find_clusters(
    session: &Session,
    stack: &Stack,
    is_matching: impl AsyncFn(AgentId) -> Result<bool, Failure>,
) -> Result<Vec<String>, Failure> {
    let overview = session.client.get_overview(Some(stack.id)).await?;
    let names = ClusterNames::new(&overview.agents);
    let assignments = overview.stacks.iter().flat_map(|stack| &stack.assignments);
    let assigned: Vec<AgentId> =
        assignments.filter(|assignment| !assignment.is_removal).map(|assignment| assignment.agent_id).collect();
    let mut lost = Vec::new();
    for agent in &assigned {
        if assigned.len() > EXAMINED_MAX
            || (!list_targets(session, *agent).await?.contains(&stack.id) && is_matching(*agent).await?)
        {
            lost.push(names.get(*agent));
        }
    }
    Ok(lost)
}

/// Returns the stacks that an agent would lose if what makes `is_matching` hold were removed.
pub(crate) async fn find_stacks(
    session: &Session,
    agent: &Agent,
    is_matching: impl AsyncFn(&StackOverview) -> Result<bool, Failure>,
) -> Result<Vec<String>, Failure> {
    let overview = session.client.get_overview(None).await?;
    let targets = list_targets(session, agent.id).await?;
    let is_assigned = |stack: &&StackOverview| {
        let mut assignments = stack.assignments.iter();
        assignments.any(|assignment| assignment.agent_id == agent.id && !assignment.is_removal)
    };
    let assigned = overview.stacks.iter().filter(is_assigned).filter(|stack| !targets.contains(&stack.id));
    let assigned: Vec<&StackOverview> = assigned.collect();
    let mut lost = Vec::new();
    for stack in &assigned {
        if assigned.len() > EXAMINED_MAX || is_matching(stack).await? {
            lost.push(stack.name.clone());
        }
    }
    Ok(lost)
}

/// Returns true if an agent has a stack also by a label or an annotation that both have. Objects that the key may not read do not count.
pub(crate) async fn is_assigned_by_label(session: &Session, stack: &Stack, agent: &Agent) -> Result<bool, Failure> {
    let client = &session.client;
    let registered = accept_forbidden(client.list_registrations(stack.generator_id).await)?.unwrap_or_default();
    if registered.iter().all(|registration| registration.agent_id != agent.id) {
        return Ok(false);
    }
    let labels = accept_forbidden(client.list_agent_labels(agent.id).await)?.unwrap_or_default();
    let of_stack = client.list_stack_labels(stack.id).await?;
    if of_stack.iter().any(|of_stack| labels.iter().any(|known| known.label == of_stack.label)) {
        return Ok(true);
    }
    let annotations = accept_forbidden(client.list_agent_annotations(agent.id).await)?.unwrap_or_default();
    let is_shared =
        |key: &str, value: &str| annotations.iter().any(|known| (&*known.key, &*known.value) == (key, value));
    let of_stack = client.list_stack_annotations(stack.id).await?;
    Ok(of_stack.iter().any(|of_stack| is_shared(&of_stack.key, &of_stack.value)))
}

async fn list_targets(session: &Session, agent: AgentId) -> Result<Vec<StackId>, Failure> {
    let targets = accept_forbidden(session.client.list_targets(agent).await)?.unwrap_or_default();
    Ok(targets.into_iter().map(|target: AgentTarget| target.stack_id).collect())
}

/// Joins names, of which there may be many.
pub(crate) fn join_names(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMES_MAX);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", names.iter().take(NAMES_MAX).map(String::as_str).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::join_names;

    #[test]
    fn a_question_has_a_limited_number_of_names() {
        let names = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
        assert_eq!(join_names(&names(2)), "0, 1");
        assert_eq!(join_names(&names(7)), "0, 1, 2, 3, 4 and 2 more");
    }
}
