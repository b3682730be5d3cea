//! Follows a submission on every cluster until it is ready, has failed, or the time is over.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::slice;
use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;
use sindri_model::wire::{AssignmentState, AssignmentStatus, Stack, StackOverview, StatusOverview};
use sindri_model::{AgentId, Sequence};
use tokio::time::{Instant, sleep};

use crate::failure::Failure;
use crate::output::Cell;
use crate::session::Session;
use crate::status::{ClusterNames, GeneratorNames, StackNames, describe_cause, style_of_state};

/// Time between two requests.
const INTERVAL: Duration = Duration::from_secs(1);

/// Request to follow a submission, and the limit on its time.
#[derive(Args)]
pub(crate) struct Wait {
    /// Wait until the stack is ready on every cluster. Exit code 1: it has failed on one; 4: the time is over.
    #[arg(long)]
    wait: bool,
    /// Longest wait, such as 90s, 10m or 1h.
    #[arg(long, value_name = "DURATION", default_value = "10m", requires = "wait")]
    timeout: SignedDuration,
}

/// Progress of a submission on all clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Ready,
    Failed,
    Waiting,
}

/// Waits, if the arguments say so. Progress is shown on standard error, so that standard output stays a document.
pub(crate) async fn follow(
    session: &Session,
    stack: &Stack,
    submitted: Sequence,
    arguments: &Wait,
) -> Result<(), Failure> {
    if !arguments.wait {
        return Ok(());
    }
    let timeout = Duration::try_from(arguments.timeout);
    let timeout = timeout.map_err(|_| Failure::Usage("--timeout must not be negative".to_owned()))?;
    let deadline = Instant::now() + timeout;
    let mut display = Display::new();
    loop {
        match session.client.get_overview(Some(stack.id)).await {
            Ok(overview) => {
                let Some(current) = overview.stacks.first() else {
                    return Err(Failure::Operation(format!("stack {} was deleted", stack.name)));
                };
                display.show(session, &overview, current);
                match assess(current, submitted) {
                    Progress::Ready => return Ok(()),
                    Progress::Failed => return Err(describe_failure(&overview, current)),
                    Progress::Waiting if current.assignments.is_empty() => return Err(not_targeted(stack)),
                    Progress::Waiting if Instant::now() >= deadline => {
                        return Err(describe_timeout(&overview, current, arguments.timeout));
                    }
                    Progress::Waiting => {}
                }
            }
            Err(error) if error.is_transient() && Instant::now() < deadline => display.note(&error.to_string()),
            Err(error) => return Err(error.into()),
        }
        sleep(INTERVAL).await;
    }
}

/// A cluster that has failed does not end the wait for the others.
fn assess(stack: &StackOverview, submitted: Sequence) -> Progress {
    let is_current = stack.revision.is_some_and(|newest| newest.sequence_id >= submitted);
    if !is_current || stack.assignments.is_empty() {
        return Progress::Waiting;
    }
    let mut states = stack.assignments.iter().map(|assignment| assignment.state);
    if states.clone().all(AssignmentState::is_done) {
        return Progress::Ready;
    }
    match states.all(|state| state.is_done() || state == AssignmentState::Failed) {
        true => Progress::Failed,
        false => Progress::Waiting,
    }
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
    let described = stack.assignments.iter().filter(|assignment| includes(assignment.state)).map(|assignment| {
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
    noted: Option<String>,
}

impl Display {
    fn new() -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { is_terminal, painted_lines: 0, known: BTreeMap::new(), noted: None }
    }

    fn show(&mut self, session: &Session, overview: &StatusOverview, stack: &StackOverview) {
        self.noted = None;
        let clusters = ClusterNames::new(&overview.agents);
        if self.is_terminal {
            let header = ["CLUSTER", "STATE", "CAUSE"].map(str::to_owned);
            let row = |assignment: &AssignmentStatus| {
                let state = Cell::text(assignment.state).styled(style_of_state(assignment.state));
                let cause = describe(stack, assignment);
                vec![Cell::text(clusters.get(assignment.agent_id)), state, Cell::text(cause.trim_start_matches(": "))]
            };
            let rows: Vec<Vec<Cell>> = stack.assignments.iter().map(row).collect();
            return self.paint(&session.output.format_grid(&header, &rows));
        }
        for assignment in &stack.assignments {
            let line = format!(
                "{} on {}: {}{}",
                stack.name,
                clusters.get(assignment.agent_id),
                assignment.state,
                describe(stack, assignment)
            );
            if self.known.get(&assignment.agent_id) != Some(&line) {
                write_progress(&format!("{}\n", line.replace(char::is_control, " ")));
                self.known.insert(assignment.agent_id, line);
            }
        }
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
            write_progress(&format!("{error}; it is tried again\n"));
        }
    }
}

/// Progress that cannot be shown is no reason to stop waiting.
fn write_progress(text: &str) {
    let mut output = std::io::stderr().lock();
    let _closed = output.write_all(text.as_bytes()).and_then(|()| output.flush());
}
