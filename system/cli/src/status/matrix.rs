//! The matrix of stacks and clusters. With more clusters than fit the terminal, each stack has its counts of states instead.

use std::collections::{BTreeMap, BTreeSet};

use sindri_model::AgentId;
use sindri_model::wire::{AssignmentState, StackOverview, StatusOverview};

use super::clusters::ClusterNames;
use super::stacks::StackNames;
use super::style::style_of_state;
use crate::output::{Cell, Output};

pub(super) fn format_matrix(
    overview: &StatusOverview,
    clusters: &ClusterNames,
    names: &StackNames,
    output: &Output,
) -> String {
    let assignments = overview.stacks.iter().flat_map(|stack| &stack.assignments);
    let assigned: BTreeSet<AgentId> = assignments.map(|assignment| assignment.agent_id).collect();
    let agents = overview.agents.iter().map(|agent| agent.id);
    let columns: Vec<AgentId> = agents.filter(|agent| assigned.contains(agent)).collect();
    let cluster_names = columns.iter().map(|agent| clusters.get(*agent));
    let header: Vec<String> = ["STACK".to_owned(), "REVISION".to_owned()].into_iter().chain(cluster_names).collect();
    let rows: Vec<Vec<Cell>> = overview.stacks.iter().map(|stack| build_row(stack, names, &columns)).collect();
    if output.fits(&header, &rows) {
        return output.format_grid(&header, &rows);
    }
    let rows: Vec<Vec<Cell>> = overview.stacks.iter().map(|stack| build_counts(stack, names, clusters)).collect();
    output.format_grid(&["STACK", "REVISION", "READY", "OTHERS"].map(str::to_owned), &rows)
}

fn build_row(stack: &StackOverview, names: &StackNames, columns: &[AgentId]) -> Vec<Cell> {
    let states: BTreeMap<AgentId, AssignmentState> =
        stack.assignments.iter().map(|assignment| (assignment.agent_id, assignment.state)).collect();
    let cell = |agent: &AgentId| match states.get(agent) {
        Some(state) => Cell::text(state).styled(style_of_state(*state)),
        None => Cell::text("-"),
    };
    let [name, revision] = describe_stack(stack, names);
    [name, revision].into_iter().chain(columns.iter().map(cell)).collect()
}

/// Returns the name of a stack, and the number of its newest revision.
fn describe_stack(stack: &StackOverview, names: &StackNames) -> [Cell; 2] {
    let deleted = if stack.deleted_at.is_some() { " (deleted)" } else { "" };
    let number = stack.revision.map(|revision| revision.number);
    [Cell::text(format!("{}{deleted}", names.show(stack))), Cell::optional(number)]
}

/// Counts the ready clusters of a stack, and names the others.
fn build_counts(stack: &StackOverview, names: &StackNames, clusters: &ClusterNames) -> Vec<Cell> {
    let done = stack.assignments.iter().filter(|assignment| assignment.state.is_done()).count();
    let of_state = |state: &AssignmentState| {
        let with_state = stack.assignments.iter().filter(|assignment| assignment.state == *state);
        let on: Vec<String> = with_state.map(|assignment| clusters.get(assignment.agent_id)).collect();
        (!on.is_empty()).then(|| format!("{} {state}: {}", on.len(), on.join(", ")))
    };
    let worst = stack.assignments.iter().map(|assignment| assignment.state).min();
    let others: Vec<String> =
        AssignmentState::ALL.iter().filter(|state| !state.is_done()).filter_map(of_state).collect();
    let style = worst.map(style_of_state).unwrap_or_default();
    let [name, revision] = describe_stack(stack, names);
    let ready = Cell::text(format!("{done}/{}", stack.assignments.len()));
    vec![name, revision, ready.styled(style), Cell::text(others.join("; "))]
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;
    use sindri_model::wire::StatusOverview;

    use super::*;
    use crate::output::{Format, Terminal};

    const STATES: [&str; 4] = ["Ready", "Failed", "Ready", "Offline"];

    fn id(kind: usize, number: usize) -> String {
        format!("{kind}0000000-0000-4000-8000-{number:012}")
    }

    /// Returns an overview of one stack on four clusters.
    fn overview() -> StatusOverview {
        let agents: Vec<_> = (0..STATES.len())
            .map(|number| {
                json!({"id": id(1, number), "name": "a", "cluster_name": format!("cluster-{number}"), "status": "ACTIVE",
                       "is_online": true})
            })
            .collect();
        let assignments: Vec<_> = STATES
            .iter()
            .enumerate()
            .map(|(number, state)| json!({"agent_id": id(1, number), "state": state}))
            .collect();
        let stack = json!({"id": id(2, 0), "name": "web", "generator_id": id(3, 0), "assignments": assignments});
        let document = json!({"time": "1970-01-01T00:00:00Z", "agents": agents, "stacks": [stack]});
        serde_json::from_value(document).unwrap()
    }

    fn format(width: Option<usize>) -> String {
        let terminal = Terminal { width, has_colors: false };
        let output = Output { format: Format::Table, terminal, error_terminal: terminal, now: Timestamp::UNIX_EPOCH };
        let overview = overview();
        let names = StackNames::new(&overview.stacks, &BTreeMap::new());
        format_matrix(&overview, &ClusterNames::new(&overview.agents), &names, &output)
    }

    #[test]
    fn a_matrix_that_does_not_fit_the_terminal_becomes_counts_with_the_clusters_that_are_not_ready() {
        let wide = "STACK  REVISION  cluster-0  cluster-1  cluster-2  cluster-3\n\
                    web    -         Ready      Failed     Ready      Offline\n";
        assert_eq!(format(None), wide);
        assert_eq!(format(Some(60)), wide);
        let narrow = "STACK  REVISION  READY  OTHERS\nweb    -         2/4    1 Failed: cluster-1; 1 Offlin…\n";
        assert_eq!(format(Some(54)), narrow);
    }
}
