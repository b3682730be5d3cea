//! The matrix of stacks and clusters. With more clusters than fit the terminal, each stack has its counts of states instead.

use std::collections::BTreeMap;

use sindri_model::AgentId;
use sindri_model::wire::{AgentOverview, AssignmentState, StackOverview, StatusOverview};

use super::clusters::ClusterNames;
use super::style::style_of_state;
use crate::output::{Cell, Output};

pub(super) fn format_matrix(overview: &StatusOverview, clusters: &ClusterNames, output: &Output) -> String {
    let is_assigned = |agent: &&AgentOverview| {
        let mut assignments = overview.stacks.iter().flat_map(|stack| &stack.assignments);
        assignments.any(|assignment| assignment.agent_id == agent.id)
    };
    let columns: Vec<AgentId> = overview.agents.iter().filter(is_assigned).map(|agent| agent.id).collect();
    let names = columns.iter().map(|agent| clusters.get(*agent));
    let header: Vec<String> = ["STACK".to_owned(), "REVISION".to_owned()].into_iter().chain(names).collect();
    let rows: Vec<Vec<Cell>> = overview.stacks.iter().map(|stack| build_row(stack, &columns)).collect();
    if output.fits(&header, &rows) {
        return output.format_grid(&header, &rows);
    }
    let rows: Vec<Vec<Cell>> = overview.stacks.iter().map(|stack| build_counts(stack, clusters)).collect();
    output.format_grid(&["STACK", "REVISION", "READY", "OTHERS"].map(str::to_owned), &rows)
}

fn build_row(stack: &StackOverview, columns: &[AgentId]) -> Vec<Cell> {
    let states: BTreeMap<AgentId, AssignmentState> =
        stack.assignments.iter().map(|assignment| (assignment.agent_id, assignment.state)).collect();
    let cell = |agent: &AgentId| match states.get(agent) {
        Some(state) => Cell::text(state).styled(style_of_state(*state)),
        None => Cell::text("-"),
    };
    let [name, revision] = describe_stack(stack);
    [name, revision].into_iter().chain(columns.iter().map(cell)).collect()
}

/// Returns the name of a stack, and the number of its newest revision.
fn describe_stack(stack: &StackOverview) -> [Cell; 2] {
    let deleted = if stack.deleted_at.is_some() { " (deleted)" } else { "" };
    let number = stack.revision.map(|revision| revision.number);
    [Cell::text(format!("{}{deleted}", stack.name)), Cell::optional(number)]
}

/// Counts the ready clusters of a stack, and names the others.
fn build_counts(stack: &StackOverview, clusters: &ClusterNames) -> Vec<Cell> {
    let done = stack.assignments.iter().filter(|assignment| assignment.state.is_done()).count();
    let of_state = |state: &AssignmentState| {
        let with_state = stack.assignments.iter().filter(|assignment| assignment.state == *state);
        let names: Vec<String> = with_state.map(|assignment| clusters.get(assignment.agent_id)).collect();
        (!names.is_empty()).then(|| format!("{} {state}: {}", names.len(), names.join(", ")))
    };
    let worst = stack.assignments.iter().map(|assignment| assignment.state).min();
    let others: Vec<String> =
        AssignmentState::ALL.iter().filter(|state| !state.is_done()).filter_map(of_state).collect();
    let style = worst.map(style_of_state).unwrap_or_default();
    let [name, revision] = describe_stack(stack);
    let ready = Cell::text(format!("{done}/{}", stack.assignments.len()));
    vec![name, revision, ready.styled(style), Cell::text(others.join("; "))]
}
