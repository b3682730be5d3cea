//! An overview of stacks on clusters as people read it: a matrix, and below it the causes.

mod causes;
mod clusters;
mod matrix;
mod style;

use sindri_model::wire::{StackOverview, StatusOverview};

use crate::output::Output;

pub(crate) use causes::describe_cause;
pub(crate) use clusters::ClusterNames;
pub(crate) use style::style_of_state;

/// Formats an overview as a matrix and its causes.
pub(crate) fn format_overview(overview: &StatusOverview, output: &Output) -> String {
    let clusters = ClusterNames::new(&overview.agents);
    let causes = causes::format_causes(overview, &clusters, output);
    let separator = if causes.is_empty() { "" } else { "\n" };
    format!("{}{separator}{causes}", matrix::format_matrix(overview, &clusters, output))
}

/// Returns the names of the stacks for which a person has to do something.
pub(crate) fn find_wrong(overview: &StatusOverview) -> Vec<&str> {
    let is_wrong = |stack: &&StackOverview| stack.assignments.iter().any(|assignment| assignment.state.is_wrong());
    overview.stacks.iter().filter(is_wrong).map(|stack| stack.name.as_str()).collect()
}
