//! An overview of stacks on clusters as people read it: a matrix, and below it the causes.

mod causes;
mod clusters;
mod matrix;
mod stacks;
mod style;

use sindri_model::wire::{AgentOverview, AgentStatus, StackOverview, StatusOverview};

use crate::output::Output;

pub(crate) use causes::describe_cause;
pub(crate) use clusters::ClusterNames;
pub(crate) use stacks::{GeneratorNames, StackNames, find_ambiguous};
pub(crate) use style::style_of_state;

/// Formats an overview as a matrix and its causes.
pub(crate) fn format_overview(overview: &StatusOverview, stacks: &StackNames, output: &Output) -> String {
    let clusters = ClusterNames::new(&overview.agents);
    let causes = causes::format_causes(overview, &clusters, stacks, output);
    if overview.stacks.is_empty() {
        return causes;
    }
    let separator = if causes.is_empty() { "" } else { "\n" };
    format!("{}{separator}{causes}", matrix::format_matrix(overview, &clusters, stacks, output))
}

/// Returns the names of the stacks, and of the agents, for which a person has to do something.
pub(crate) fn find_wrong(overview: &StatusOverview, stacks: &StackNames) -> Vec<String> {
    let is_wrong = |stack: &&StackOverview| stack.assignments.iter().any(|assignment| assignment.state.is_wrong());
    let wrong = overview.stacks.iter().filter(is_wrong).map(|stack| stacks.show(stack));
    let is_absent = |agent: &&AgentOverview| agent.status == AgentStatus::Inactive || !agent.is_online;
    let absent = overview.agents.iter().filter(is_absent).map(|agent| format!("agent {}", agent.name));
    wrong.chain(absent).collect()
}
