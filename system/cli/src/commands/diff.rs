//! `sindri diff`: what the files of a bundle would change on each cluster, without a submission.

use std::io::Write as _;
use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;
use serde::Serialize;
use sindri_model::wire::{PlanStatus, Proposal, ProposedPlan, Stack};
use sindri_model::{ProposalId, StackId};
use tokio::time::{Instant, sleep};

use crate::failure::Failure;
use crate::names;
use crate::session::Session;
use crate::submission::BundleFiles;

/// Time before the plans are read for the first time; then it doubles.
const INTERVAL_MIN: Duration = Duration::from_millis(200);
/// Longest time between two requests.
const INTERVAL_MAX: Duration = Duration::from_secs(1);
/// Longest wait: the broker forgets a proposal after ten minutes.
const TIMEOUT_MAX: Duration = Duration::from_secs(9 * 60);
/// Stacks that an error names.
const NAMED_MAX: usize = 10;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    files: BundleFiles,
    /// Name or id of the stack; needed if the key may read more than one.
    #[arg(long)]
    stack: Option<String>,
    /// Longest wait for the plans of the agents, such as 30s or 5m.
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    timeout: SignedDuration,
}

/// Result of the command, as a document has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum DiffResult {
    /// The text would change nothing on any cluster.
    Unchanged,
    /// It would change at least one cluster.
    Changed,
    /// It would fail on at least one cluster.
    Failed,
    /// An agent has not answered in time.
    TimedOut,
    /// It would change nothing where there is a plan, and at least one agent is offline or inactive.
    Unknown,
}

/// Plans of a text, as they are printed.
#[derive(Serialize)]
struct Differences {
    /// Name of the stack.
    stack: String,
    result: DiffResult,
    #[serde(flatten)]
    proposal: Proposal,
}

pub(crate) async fn run(session: &Session, arguments: &Arguments) -> Result<(), Failure> {
    let timeout = Duration::try_from(arguments.timeout);
    let timeout = timeout.ok().filter(|timeout| *timeout <= TIMEOUT_MAX);
    let timeout = timeout.ok_or_else(|| Failure::Usage("--timeout must be between 0s and 9m".to_owned()))?;
    let bundle = arguments.files.read()?;
    let stack = find_stack(session, arguments.stack.as_deref()).await?;
    let created = session.client.create_proposal(stack.id, &bundle.text).await?;
    if created.agents.is_empty() {
        let name = &stack.name;
        return Err(Failure::Operation(format!(
            "there is nothing to compare with: stack {name} is not targeted at any cluster; sindri target {name} AGENT \
             assigns it"
        )));
    }
    let proposal = await_plans(session, stack.id, created.id, Instant::now() + timeout).await?;
    let differences = Differences { result: conclude(&proposal), stack: stack.name, proposal };
    let names = || differences.proposal.agents.iter().filter(|plan| would_change(plan)).map(name_agent).collect();
    session.output.print_document(&differences, names, || describe_plans(&differences.proposal))?;
    to_failure(&differences, arguments.timeout).map_or(Ok(()), Err)
}

async fn find_stack(session: &Session, name: Option<&str>) -> Result<Stack, Failure> {
    if let Some(name) = name {
        return names::find_stack(&session.client, name).await;
    }
    let mut stacks = session.client.list_stacks().await?;
    match (stacks.pop(), stacks.as_slice()) {
        (None, _) => {
            Err(Failure::Usage("the key can read no stack; create one with sindri apply STACK --create".to_owned()))
        }
        (Some(only), []) => Ok(only),
        (Some(last), others) => {
            let mut known: Vec<&str> = others.iter().map(|stack| stack.name.as_str()).collect();
            known.push(&last.name);
            let more = if known.len() > NAMED_MAX { ", …" } else { "" };
            let known = known.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
            Err(Failure::Usage(format!("--stack must say which stack the files are for: {known}{more}")))
        }
    }
}

/// Waits until every agent that can answer has answered, or until the deadline.
async fn await_plans(
    session: &Session,
    stack: StackId,
    id: ProposalId,
    deadline: Instant,
) -> Result<Proposal, Failure> {
    let (mut interval, mut shown) = (INTERVAL_MIN, String::new());
    loop {
        sleep(interval.min(deadline.saturating_duration_since(Instant::now()))).await;
        interval = (interval * 2).min(INTERVAL_MAX);
        let is_over = Instant::now() >= deadline;
        let line = match session.client.get_proposal(stack, id).await {
            Ok(proposal) => {
                let waiting = name_clusters(&proposal, |plan| plan.status == PlanStatus::Waiting);
                if waiting.is_empty() || is_over {
                    return Ok(proposal);
                }
                format!("waiting for the plans of {waiting}")
            }
            Err(error) if error.is_transient() && !is_over => format!("{error}; it is tried again"),
            Err(error) => return Err(error.into()),
        };
        if line != shown {
            show_progress(&line);
            shown = line;
        }
    }
}

/// Progress that cannot be shown is no reason to stop waiting.
fn show_progress(line: &str) {
    let _closed = writeln!(std::io::stderr().lock(), "{}", line.replace(char::is_control, " "));
}

fn would_change(plan: &ProposedPlan) -> bool {
    plan.changes == Some(true)
}

fn name_agent(plan: &ProposedPlan) -> String {
    format!("agent/{}", plan.name)
}

fn conclude(proposal: &Proposal) -> DiffResult {
    let has = |status: PlanStatus| proposal.agents.iter().any(|plan| plan.status == status);
    if has(PlanStatus::Failed) {
        DiffResult::Failed
    } else if has(PlanStatus::Waiting) {
        DiffResult::TimedOut
    } else if proposal.agents.iter().any(would_change) {
        DiffResult::Changed
    } else if has(PlanStatus::Offline) || has(PlanStatus::Inactive) {
        DiffResult::Unknown
    } else {
        DiffResult::Unchanged
    }
}

fn to_failure(differences: &Differences, timeout: SignedDuration) -> Option<Failure> {
    let Differences { stack, result, proposal } = differences;
    let of_status = |status: PlanStatus| name_clusters(proposal, |plan| plan.status == status);
    Some(match result {
        DiffResult::Unchanged => return None,
        DiffResult::Changed => {
            Failure::Changes(format!("stack {stack} would change on {}", name_clusters(proposal, would_change)))
        }
        DiffResult::Failed => {
            Failure::Operation(format!("stack {stack} would fail on {}", of_status(PlanStatus::Failed)))
        }
        DiffResult::TimedOut => Failure::Timeout(format!(
            "there is no plan after {timeout:#} of {}; wait longer with --timeout; an agent of an earlier version makes none",
            of_status(PlanStatus::Waiting)
        )),
        DiffResult::Unknown => {
            let is_absent = |plan: &ProposedPlan| matches!(plan.status, PlanStatus::Offline | PlanStatus::Inactive);
            let absent = name_clusters(proposal, is_absent);
            Failure::Operation(format!(
                "there is no plan of {absent}, whose agents are offline or inactive: sindri agent list shows them, and \
                 sindri agent activate activates one"
            ))
        }
    })
}

/// Returns the names of the clusters whose plans match, with the name of the agent if several agents have the cluster.
fn name_clusters(proposal: &Proposal, includes: impl Fn(&ProposedPlan) -> bool) -> String {
    let agents = &proposal.agents;
    let name = |plan: &ProposedPlan| {
        let is_only = agents.iter().filter(|other| other.cluster_name == plan.cluster_name).count() == 1;
        if is_only { plan.cluster_name.clone() } else { format!("{}/{}", plan.cluster_name, plan.name) }
    };
    agents.iter().filter(|plan| includes(plan)).map(name).collect::<Vec<_>>().join(", ")
}

/// Returns a block for each different plan, which begins with its clusters.
fn describe_plans(proposal: &Proposal) -> String {
    let mut blocks: Vec<String> = Vec::new();
    let mut described: Vec<(PlanStatus, &Option<String>)> = Vec::new();
    for ProposedPlan { status, plan, .. } in &proposal.agents {
        if described.contains(&(*status, plan)) {
            continue;
        }
        described.push((*status, plan));
        let clusters = name_clusters(proposal, |other| other.status == *status && other.plan == *plan);
        let text = match (status, plan) {
            (PlanStatus::Planned | PlanStatus::Failed, plan) => plan.as_deref().unwrap_or_default(),
            (PlanStatus::Waiting, _) => "no plan in time",
            (PlanStatus::Offline, _) => "no plan: the agent is offline",
            (PlanStatus::Inactive, _) => "no plan: the agent is inactive",
        };
        let block = format!("{clusters}:\n{}\n", text.trim_end());
        blocks.push(block.replace(|character: char| character.is_control() && character != '\n', " "));
    }
    blocks.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "20000000-0000-4000-8000-000000000000";

    /// Returns a proposal with these plans: cluster, status, and the plan.
    fn proposal(plans: &[(&str, &str, &str)]) -> Proposal {
        let agent = |(number, (cluster, status, plan)): (usize, &(&str, &str, &str))| {
            let changes = (*status == "planned").then(|| !plan.starts_with('='));
            let plan = (!plan.is_empty()).then_some(plan);
            json!({"agent_id": ID, "name": format!("agent-{number}"), "cluster_name": cluster, "status": status,
                   "changes": changes, "plan": plan})
        };
        let agents: Vec<_> = plans.iter().enumerate().map(agent).collect();
        let time = "1970-01-01T00:00:00Z";
        let document = json!({"id": ID, "stack_id": ID, "created_at": time, "expires_at": time, "agents": agents});
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn a_plan_of_several_clusters_is_printed_once_with_their_names() {
        let plans = [
            ("east", "planned", "+ A b/a  (new)\n"),
            ("north", "offline", ""),
            ("south", "failed", "! no\n\u{1b}[2J"),
            ("west", "planned", "+ A b/a  (new)\n"),
            ("west", "planned", "= 1 objects are unchanged\n"),
        ];
        let expected = "east, west/agent-3:\n+ A b/a  (new)\n\nnorth:\nno plan: the agent is offline\n\nsouth:\n! no\n [2J\n\n\
                        west/agent-4:\n= 1 objects are unchanged\n";
        assert_eq!(describe_plans(&proposal(&plans)), expected);
    }

    #[test]
    fn a_failure_comes_before_a_timeout_and_this_before_changes() {
        let (same, new, failed) = (("a", "planned", "= 1"), ("b", "planned", "+ x"), ("c", "failed", "! x"));
        let (waiting, offline) = (("d", "waiting", ""), ("e", "offline", ""));
        for (plans, result, exit) in [
            (&[same][..], DiffResult::Unchanged, None),
            (&[same, offline], DiffResult::Unknown, Some(1)),
            (&[same, new, offline], DiffResult::Changed, Some(5)),
            (&[new, waiting], DiffResult::TimedOut, Some(4)),
            (&[new, waiting, failed], DiffResult::Failed, Some(1)),
        ] {
            let proposal = proposal(plans);
            assert_eq!(conclude(&proposal), result, "{plans:?}");
            let differences = Differences { stack: "web".to_owned(), result, proposal };
            let failure = to_failure(&differences, SignedDuration::from_secs(60));
            assert_eq!(failure.map(|failure| failure.exit() as u8), exit, "{plans:?}");
        }
    }
}
