//! Follows a submission on every cluster until it is ready, has failed, or the time is over.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::slice;
use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;
use serde::Serialize;
use sindri_client::ClientError;
use sindri_model::text::to_printable;
use sindri_model::wire::{
    AgentOverview, AgentStackStatus, AgentStatus, AssignmentState, AssignmentStatus, ConditionStatus, Stack,
    StackOverview, StatusOverview, condition,
};
use sindri_model::{AgentId, Sequence};
use tokio::time::{Instant, sleep};

use crate::duration::parse_duration;
use crate::failure::Failure;
use crate::output::{Cell, Format, Output, note};
use crate::session::Session;
use crate::status::{ClusterNames, GeneratorNames, StackNames, describe_cause, style_of_state};

/// Time between two requests.
const INTERVAL: Duration = Duration::from_secs(1);
/// Longest wait that may be asked for.
const TIMEOUT_MAX: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Request to follow a submission, and the limit on its time.
#[derive(Args)]
pub(crate) struct Wait {
    /// Wait until the stack is ready on every cluster. Exit code 1: it has failed on one; 3: another submission has replaced this
    /// one; 4: the time is over.
    #[arg(long)]
    wait: bool,
    /// Longest wait, such as 90s, 10m or 1h.
    #[arg(long, value_name = "DURATION", default_value = "10m", requires = "wait", value_parser = parse_timeout)]
    timeout: SignedDuration,
}

fn parse_timeout(text: &str) -> Result<SignedDuration, String> {
    parse_duration(text, TIMEOUT_MAX)
}

/// Result of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitResult {
    Ready,
    Failed,
    /// The time is over.
    TimedOut,
    /// Another submission has replaced this one.
    Replaced,
    /// The stack was deleted.
    Deleted,
    /// The stack is not targeted at any cluster.
    NotTargeted,
    /// The broker does not answer any more.
    Unknown,
}

/// State of the stack on one cluster at the end of a wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ClusterState {
    cluster: String,
    state: AssignmentState,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// End of a wait, as a document has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Outcome {
    pub result: WaitResult,
    pub clusters: Vec<ClusterState>,
}

/// End of a wait, and the failure if the stack is not ready.
pub(crate) struct Followed {
    pub outcome: Outcome,
    pub result: Result<(), Failure>,
}

/// Progress of a submission on all clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Ready,
    Failed,
    /// A revision with this number has replaced it.
    Replaced(i64),
    Deleted,
    NotTargeted,
    Waiting,
}

/// Waits, if the arguments say so. Progress is shown on standard error, so that standard output stays a document.
pub(crate) async fn follow(
    session: &Session,
    stack: &Stack,
    submitted: Sequence,
    arguments: &Wait,
) -> Result<Option<Followed>, Failure> {
    if !arguments.wait {
        return Ok(None);
    }
    let deadline = Instant::now() + arguments.timeout.unsigned_abs();
    let mut display = Display::new();
    let mut clusters = Vec::new();
    let (kind, result) = loop {
        let is_over = Instant::now() >= deadline;
        if let Err(failure) = session.refresh_login().await {
            display.note(&failure.to_string());
        }
        match read_status(session, stack, submitted).await {
            Ok(None) => break (WaitResult::Deleted, Err(deleted(stack))),
            Ok(Some(status)) => {
                display.show(session, &status.overview, &status.stack);
                clusters = status.describe_clusters();
                let timeout = is_over.then_some(arguments.timeout);
                if let Some(end) = conclude(&status, stack, submitted, timeout) {
                    break end;
                }
            }
            Err(error) if error.is_transient() && !is_over => display.note(&error.to_string()),
            Err(error) => break (WaitResult::Unknown, Err(Failure::AfterSubmission(error))),
        }
        sleep(INTERVAL).await;
    };
    Ok(Some(Followed { outcome: Outcome { result: kind, clusters }, result }))
}

/// Returns the end of the wait; `None` if it goes on. `timeout` is the time of the wait if it is over.
fn conclude(
    status: &Status,
    stack: &Stack,
    submitted: Sequence,
    timeout: Option<SignedDuration>,
) -> Option<(WaitResult, Result<(), Failure>)> {
    let Status { overview, stack: current, ready_drifted } = status;
    Some(match assess(current, submitted, ready_drifted) {
        Progress::Ready => (WaitResult::Ready, Ok(())),
        Progress::Failed => (WaitResult::Failed, Err(describe_failure(overview, current))),
        Progress::Replaced(number) => (WaitResult::Replaced, Err(replaced(stack, number))),
        Progress::Deleted => (WaitResult::Deleted, Err(deleted(stack))),
        Progress::NotTargeted => (WaitResult::NotTargeted, Err(not_targeted(stack))),
        Progress::Waiting => (WaitResult::TimedOut, Err(describe_timeout(overview, current, timeout?))),
    })
}

/// Status of a stack that is followed.
struct Status {
    overview: StatusOverview,
    stack: StackOverview,
    /// Agents on whose clusters the submission is ready although other clients have changed objects.
    ready_drifted: BTreeSet<AgentId>,
}

impl Status {
    fn describe_clusters(&self) -> Vec<ClusterState> {
        let names = ClusterNames::new(&self.overview.agents);
        let describe = |assignment: &AssignmentStatus| ClusterState {
            cluster: names.get(assignment.agent_id),
            state: assignment.state,
            reason: assignment.reason.clone(),
            message: assignment.message.clone(),
        };
        list_targeted(&self.stack).map(describe).collect()
    }
}

/// Reads the status of a stack; `None` if it was deleted.
async fn read_status(session: &Session, stack: &Stack, submitted: Sequence) -> Result<Option<Status>, ClientError> {
    let overview = session.client.get_overview(Some(stack.id)).await?;
    let Some(stack) = overview.stacks.first().cloned() else { return Ok(None) };
    let mut ready_drifted = BTreeSet::new();
    // An agent that only detects drift stays in this state.
    if stack.assignments.iter().any(|assignment| assignment.state == AssignmentState::Drifted) {
        let reported = session.client.get_stack_status(stack.id).await?.agents;
        let ready = reported.iter().filter(|agent| is_ready(agent, submitted));
        ready_drifted.extend(ready.map(|agent| agent.agent_id));
    }
    Ok(Some(Status { overview, stack, ready_drifted }))
}

/// Returns true if an agent reports that this submission is applied and ready.
fn is_ready(agent: &AgentStackStatus, submitted: Sequence) -> bool {
    let is_true =
        |kind: &str| agent.conditions.iter().any(|known| known.kind == kind && known.status == ConditionStatus::True);
    agent.sequence_id == Some(submitted) && is_true(condition::APPLIED) && is_true(condition::READY)
}

/// A cluster that has failed does not end the wait for the others. Clusters that have to remove the stack do not count.
fn assess(stack: &StackOverview, submitted: Sequence, ready_drifted: &BTreeSet<AgentId>) -> Progress {
    let Some(newest) = stack.revision.filter(|newest| newest.sequence_id >= submitted) else {
        return Progress::Waiting;
    };
    if stack.deleted_at.is_some() || newest.is_deletion_marker {
        return Progress::Deleted;
    }
    if newest.sequence_id > submitted {
        return Progress::Replaced(newest.number);
    }
    let targeted: Vec<&AssignmentStatus> = list_targeted(stack).collect();
    let is_done =
        |assignment: &AssignmentStatus| assignment.state.is_done() || ready_drifted.contains(&assignment.agent_id);
    if targeted.is_empty() {
        return Progress::NotTargeted;
    }
    if targeted.iter().all(|assignment| is_done(assignment)) {
        return Progress::Ready;
    }
    let is_over = |assignment: &AssignmentStatus| is_done(assignment) || assignment.state == AssignmentState::Failed;
    if targeted.iter().all(|assignment| is_over(assignment)) { Progress::Failed } else { Progress::Waiting }
}

/// Lists the clusters that should have the stack.
fn list_targeted(stack: &StackOverview) -> impl Iterator<Item = &AssignmentStatus> {
    stack.assignments.iter().filter(|assignment| !assignment.is_removal)
}

fn replaced(stack: &Stack, number: i64) -> Failure {
    Failure::Replaced(format!("stack {} was replaced by revision {number} before the wait was over", stack.name))
}

fn deleted(stack: &Stack) -> Failure {
    Failure::Operation(format!("stack {} was deleted", stack.name))
}

fn not_targeted(stack: &Stack) -> Failure {
    let name = &stack.name;
    Failure::Operation(format!(
        "there is nothing to wait for: stack {name} is not targeted at any cluster; sindri target {name} AGENT assigns it"
    ))
}

fn describe_failure(overview: &StatusOverview, stack: &StackOverview) -> Failure {
    let failed = describe_assignments(overview, stack, |state| state == AssignmentState::Failed);
    Failure::Operation(format!("stack {} has failed on {failed}", stack.name))
}

fn describe_timeout(overview: &StatusOverview, stack: &StackOverview, timeout: SignedDuration) -> Failure {
    let waiting = describe_assignments(overview, stack, |state| !state.is_done());
    Failure::Timeout(format!("stack {} is not ready after {timeout:#}: {waiting}", stack.name))
}

fn describe_assignments(
    overview: &StatusOverview,
    stack: &StackOverview,
    includes: impl Fn(AssignmentState) -> bool,
) -> String {
    let clusters = ClusterNames::new(&overview.agents);
    let described = list_targeted(stack).filter(|assignment| includes(assignment.state)).map(|assignment| {
        let cause = describe(stack, assignment);
        format!("{} ({}{cause})", clusters.get(assignment.agent_id), assignment.state)
    });
    described.collect::<Vec<_>>().join(", ")
}

fn describe(stack: &StackOverview, assignment: &AssignmentStatus) -> String {
    let names = StackNames::new(slice::from_ref(stack), &GeneratorNames::new());
    let cause = describe_cause(stack, assignment, &names);
    cause.map(|cause| format!(": {cause}")).unwrap_or_default()
}

/// Progress on standard error: a table that is painted again on a terminal, otherwise a line for each change.
struct Display {
    is_terminal: bool,
    painted_lines: usize,
    known: BTreeMap<AgentId, String>,
    /// Inactive agents that were named.
    inactive: BTreeSet<AgentId>,
    noted: Option<String>,
}

impl Display {
    fn new() -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { is_terminal, painted_lines: 0, known: BTreeMap::new(), inactive: BTreeSet::new(), noted: None }
    }

    fn show(&mut self, session: &Session, overview: &StatusOverview, stack: &StackOverview) {
        self.noted = None;
        self.name_inactive(overview, stack);
        let clusters = ClusterNames::new(&overview.agents);
        if self.is_terminal {
            let header = ["CLUSTER", "STATE", "CAUSE"].map(str::to_owned);
            let row = |assignment: &AssignmentStatus| {
                let state = Cell::text(assignment.state).styled(style_of_state(assignment.state));
                let cause = describe(stack, assignment);
                vec![Cell::text(clusters.get(assignment.agent_id)), state, Cell::text(cause.trim_start_matches(": "))]
            };
            let rows: Vec<Vec<Cell>> = list_targeted(stack).map(row).collect();
            return self.paint(&self.output(session).format_grid(&header, &rows));
        }
        for assignment in list_targeted(stack) {
            let line = format!(
                "{} on {}: {}{}",
                stack.name,
                clusters.get(assignment.agent_id),
                assignment.state,
                describe(stack, assignment)
            );
            if self.known.get(&assignment.agent_id) != Some(&line) {
                note(&to_printable(&line));
                self.known.insert(assignment.agent_id, line);
            }
        }
    }

    /// Says once of each inactive agent how it becomes active: the stack would not become ready.
    fn name_inactive(&mut self, overview: &StatusOverview, stack: &StackOverview) {
        let is_targeted =
            |agent: &&AgentOverview| list_targeted(stack).any(|assignment| assignment.agent_id == agent.id);
        for agent in overview.agents.iter().filter(is_targeted) {
            if agent.status == AgentStatus::Inactive && self.inactive.insert(agent.id) {
                self.painted_lines = 0;
                let name = &agent.name;
                note(&to_printable(&format!(
                    "note: agent {name} is inactive and changes nothing: sindri agent activate {name}"
                )));
            }
        }
    }

    /// Returns the layout of the terminal behind standard error: the document on standard output has another width.
    fn output(&self, session: &Session) -> Output {
        Output { format: Format::Table, terminal: session.output.error_terminal, ..session.output }
    }

    /// Replaces the lines that were painted before.
    fn paint(&mut self, text: &str) {
        let up = if self.painted_lines == 0 { String::new() } else { format!("\u{1b}[{}A", self.painted_lines) };
        self.painted_lines = text.lines().count();
        write_progress(&format!("{up}\r\u{1b}[J{text}"));
    }

    /// Shows once that the broker does not respond.
    fn note(&mut self, error: &str) {
        if self.noted.as_deref() != Some(error) {
            self.noted = Some(error.to_owned());
            self.painted_lines = 0;
            note(&to_printable(&format!("{error}; it is tried again")));
        }
    }
}

/// Progress that cannot be shown is no reason to stop waiting.
fn write_progress(text: &str) {
    let mut output = std::io::stderr().lock();
    let _closed = output.write_all(text.as_bytes()).and_then(|()| output.flush());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SUBMITTED: Sequence = Sequence(7);

    fn agent(number: usize) -> String {
        format!("10000000-0000-4000-8000-{number:012}")
    }

    /// Returns a stack at this sequence with these states; `-` before a state is a removal.
    fn stack(sequence: i64, states: &[&str]) -> StackOverview {
        let assignment = |(number, state): (usize, &&str)| {
            let is_removal = state.starts_with('-');
            json!({"agent_id": agent(number), "state": state.trim_start_matches('-'), "is_removal": is_removal})
        };
        let assignments: Vec<_> = states.iter().enumerate().map(assignment).collect();
        let revision = json!({"number": 3, "sequence_id": sequence, "submitted_at": "1970-01-01T00:00:00Z",
                              "is_deletion_marker": false});
        let id = "20000000-0000-4000-8000-000000000000";
        let document = json!({"id": id, "name": "web", "generator_id": id, "revision": revision,
                              "assignments": assignments});
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn only_targeted_clusters_count_and_another_submission_ends_the_wait() {
        for (sequence, states, progress) in [
            (7, &["Ready", "Ready"][..], Progress::Ready),
            (7, &["Ready", "-Removing", "-Offline", "-Failed"], Progress::Ready),
            (7, &["-Offline"], Progress::NotTargeted),
            (7, &[], Progress::NotTargeted),
            (7, &["Ready", "Failed"], Progress::Failed),
            (7, &["Progressing", "Failed"], Progress::Waiting),
            (7, &["Ready", "Offline"], Progress::Waiting),
            (7, &["Ready", "Drifted"], Progress::Waiting),
            (6, &["Ready"], Progress::Waiting),
            (8, &["Ready"], Progress::Replaced(3)),
            (8, &["Progressing"], Progress::Replaced(3)),
        ] {
            assert_eq!(
                assess(&stack(sequence, states), SUBMITTED, &BTreeSet::new()),
                progress,
                "{sequence} {states:?}"
            );
        }
    }

    #[test]
    fn a_cluster_that_is_ready_and_drifted_is_done() {
        let ready = BTreeSet::from([agent(1).parse().unwrap()]);
        assert_eq!(assess(&stack(7, &["Ready", "Drifted"]), SUBMITTED, &ready), Progress::Ready);
        assert_eq!(assess(&stack(7, &["Drifted", "Drifted"]), SUBMITTED, &ready), Progress::Waiting);
        assert_eq!(assess(&stack(7, &["Failed", "Drifted"]), SUBMITTED, &ready), Progress::Failed);
    }

    #[test]
    fn a_deleted_stack_is_not_replaced() {
        let deleted = StackOverview { deleted_at: Some(jiff::Timestamp::UNIX_EPOCH), ..stack(8, &["Removing"]) };
        assert_eq!(assess(&deleted, SUBMITTED, &BTreeSet::new()), Progress::Deleted);
    }
}
