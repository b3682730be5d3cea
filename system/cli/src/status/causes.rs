//! The lines below the matrix: each cause once, with the stacks or clusters that it concerns, and what to do.

use std::collections::BTreeMap;

use sindri_model::StackId;
use sindri_model::text::to_printable;
use sindri_model::wire::{
    AgentOverview, AgentStatus, AssignmentState, AssignmentStatus, StackOverview, StatusOverview,
};

use super::clusters::ClusterNames;
use super::stacks::StackNames;
use super::style::style_of_state;
use crate::output::{Output, Style, format_age};

/// Lines of one kind.
const LINES_MAX: usize = 30;
/// Lines of the terminal for one cause.
const WRAPPED_MAX: usize = 4;
/// Clusters that one line names.
const CLUSTERS_MAX: usize = 5;

pub(super) fn format_causes(
    overview: &StatusOverview,
    clusters: &ClusterNames,
    names: &StackNames,
    output: &Output,
) -> String {
    let agents = overview.agents.iter().filter_map(|agent| describe_agent(agent, overview));
    let mut stacks: Vec<Line> =
        overview.stacks.iter().flat_map(|stack| describe_stack(stack, clusters, names)).collect();
    // The lines that are cut are the least urgent ones.
    stacks.sort_by_key(|line| (line.state.is_none(), line.state));
    format_lines(agents.collect(), output) + &format_lines(stacks, output)
}

/// A line, and the colour of its first words.
struct Line {
    /// State of the stack, in the order of urgency; none if no cluster has it, or if the line is about an agent.
    state: Option<AssignmentState>,
    subject: String,
    style: Style,
    text: String,
}

fn format_lines(lines: Vec<Line>, output: &Output) -> String {
    let hidden = lines.len().saturating_sub(LINES_MAX);
    let more = if hidden == 0 { String::new() } else { format!("and {hidden} more; --output json has all\n") };
    let formatted = lines.iter().take(LINES_MAX).map(|Line { subject, style, text, .. }| {
        let text = to_printable(text);
        let wrapped = output.wrap_line(&format!("{subject} {text}"), WRAPPED_MAX);
        match wrapped.strip_prefix(subject.as_str()) {
            Some(rest) => format!("{}{rest}\n", style.paint(subject, output.terminal.has_colors)),
            None => format!("{wrapped}\n"),
        }
    });
    formatted.chain([more]).collect()
}

/// Describes an agent that is inactive, or from which no heartbeat arrives.
fn describe_agent(agent: &AgentOverview, overview: &StatusOverview) -> Option<Line> {
    let AgentOverview { name, cluster_name, status, is_online, last_heartbeat, .. } = agent;
    let (style, text) = match (status, is_online, last_heartbeat) {
        (AgentStatus::Inactive, ..) => {
            (Style::Warning, format!("is inactive and changes nothing: sindri agent activate {name}"))
        }
        (AgentStatus::Active, true, _) => return None,
        (AgentStatus::Active, false, Some(time)) => {
            (Style::Bad, format!("is offline: last seen {}", format_age(*time, overview.time)))
        }
        (AgentStatus::Active, false, None) => (Style::Bad, "is offline: it was never seen".to_owned()),
    };
    Some(Line { state: None, subject: format!("agent {name} of cluster {cluster_name}"), style, text })
}

/// Describes the causes of a stack; the same cause on several clusters is one line.
fn describe_stack(stack: &StackOverview, clusters: &ClusterNames, names: &StackNames) -> Vec<Line> {
    if stack.assignments.is_empty() {
        let text = format!("is not targeted at any cluster: sindri target {} AGENT", names.argument(stack));
        return vec![Line { state: None, subject: names.show(stack), style: Style::Warning, text }];
    }
    let mut causes: BTreeMap<(AssignmentState, String), Vec<String>> = BTreeMap::new();
    for assignment in &stack.assignments {
        if let Some(cause) = describe_cause(stack, assignment, names) {
            causes.entry((assignment.state, cause)).or_default().push(clusters.get(assignment.agent_id));
        }
    }
    let describe = |((state, cause), on): ((AssignmentState, String), Vec<String>)| {
        let more = on.len().saturating_sub(CLUSTERS_MAX);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let on = on.into_iter().take(CLUSTERS_MAX).collect::<Vec<_>>().join(", ");
        let subject = format!("{} {state} on {on}{more}:", names.show(stack));
        Line { state: Some(state), subject, style: style_of_state(state), text: cause }
    };
    causes.into_iter().map(describe).collect()
}

/// Returns the cause of a state that needs an explanation, with the names of stacks instead of their ids. The lines about agents
/// explain those that are offline or inactive.
pub(crate) fn describe_cause(
    stack: &StackOverview,
    assignment: &AssignmentStatus,
    names: &StackNames,
) -> Option<String> {
    let message = match assignment.state {
        AssignmentState::Ready | AssignmentState::Removed | AssignmentState::Offline | AssignmentState::Inactive => {
            return None;
        }
        AssignmentState::Pending if stack.revision.is_none() => {
            return Some(format!("there is no revision yet: sindri apply {} -f FILE", names.argument(stack)));
        }
        AssignmentState::Suspended => {
            return Some(format!("nothing is written: sindri stack resume {}", names.argument(stack)));
        }
        AssignmentState::Pending => return None,
        AssignmentState::Failed
        | AssignmentState::Blocked
        | AssignmentState::Drifted
        | AssignmentState::Removing
        | AssignmentState::Progressing => assignment.message.as_ref().or(assignment.reason.as_ref()),
    };
    let is_unconfirmed = assignment.reason.as_deref() == Some("NotConfirmed");
    let message = message.filter(|message| !message.is_empty() && !is_unconfirmed)?;
    Some(replace_ids(message, |stack| names.get(stack)))
}

/// Characters of an id before its first dash, and of the whole id.
const ID_START_CHARS: usize = 8;
const ID_CHARS: usize = 36;

/// Replaces the ids of stacks by their names.
fn replace_ids<'a>(message: &str, find_name: impl Fn(StackId) -> Option<&'a str>) -> String {
    let (mut text, mut rest) = (String::with_capacity(message.len()), message);
    while let Some(dash) = rest.find('-') {
        let start = dash.saturating_sub(ID_START_CHARS);
        let id = rest.get(start..start + ID_CHARS).and_then(|id| id.parse().ok());
        let (kept, consumed) = match id.and_then(&find_name) {
            Some(name) => (format!("{}{name}", &rest[..start]), start + ID_CHARS),
            None => (rest[..=dash].to_owned(), dash + 1),
        };
        text.push_str(&kept);
        rest = &rest[consumed..];
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::output::{Format, Terminal};

    fn id(number: usize) -> String {
        format!("20000000-0000-4000-8000-{number:012}")
    }

    fn lines(agents: &[Value], stacks: &[Value]) -> Vec<String> {
        let overview = json!({"time": "2026-01-01T00:10:00Z", "agents": agents, "stacks": stacks});
        let overview: StatusOverview = serde_json::from_value(overview).unwrap();
        let names = StackNames::new(&overview.stacks, &BTreeMap::new());
        let terminal = Terminal { width: None, has_colors: true };
        let output = Output { format: Format::Table, terminal, error_terminal: terminal, now: overview.time };
        let causes = format_causes(&overview, &ClusterNames::new(&overview.agents), &names, &output);
        causes.lines().map(str::to_owned).collect()
    }

    fn agent(number: usize, is_online: bool, last_heartbeat: Option<&str>) -> Value {
        json!({
            "id": id(number), "name": "a", "cluster_name": format!("c{number}"), "status": "ACTIVE", "is_online": is_online,
            "last_heartbeat": last_heartbeat,
        })
    }

    fn stack(number: usize, assignments: &[Value]) -> Value {
        json!({
            "id": id(number), "name": format!("s{number}"), "generator_id": id(0),
            "revision": {"number": 1, "sequence_id": 1, "submitted_at": "2026-01-01T00:00:00Z", "is_deletion_marker": false},
            "assignments": assignments,
        })
    }

    #[test]
    fn an_agent_that_is_offline_is_red_with_its_last_heartbeat() {
        let agents = [agent(1, true, None), agent(2, false, Some("2026-01-01T00:07:00Z")), agent(3, false, None)];
        let lines = lines(&agents, &[]);
        let red = Style::Bad.paint("agent a of cluster c2", true);
        assert_eq!(lines[0], format!("{red} is offline: last seen 3 min ago"));
        assert!(lines[1].ends_with("c3\u{1b}[0m is offline: it was never seen"), "{}", lines[1]);
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn one_cause_on_seven_clusters_is_one_line() {
        let agents: Vec<Value> = (1..=7).map(|number| agent(number, true, None)).collect();
        let failed = |number| json!({"agent_id": id(number), "state": "Failed", "message": "no such image"});
        let assignments: Vec<Value> = (1..=7).map(failed).collect();
        let lines = lines(&agents, &[stack(20, &assignments)]);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].contains("s20 Failed on c1, c2, c3, c4, c5 and 2 more:"), "{}", lines[0]);
        assert!(lines[0].ends_with("no such image"), "{}", lines[0]);
    }

    #[test]
    fn lines_that_are_cut_are_the_least_urgent_ones() {
        let mut stacks: Vec<Value> = (100..100 + LINES_MAX).map(|number| stack(number, &[])).collect();
        stacks.push(stack(999, &[json!({"agent_id": id(1), "state": "Failed", "message": "no such image"})]));
        let lines = lines(&[agent(1, true, None)], &stacks);
        assert!(lines[0].contains("s999 Failed"), "{}", lines[0]);
        assert_eq!(lines.last().unwrap(), "and 1 more; --output json has all");
    }

    #[test]
    fn ids_of_known_stacks_are_replaced_by_their_names() {
        let (shop, other) = ("20000000-0000-4000-8000-000000000001", "20000000-0000-4000-8000-000000000002");
        let names = BTreeMap::from([(shop.parse::<StackId>().unwrap(), "shop")]);
        let replace = |message: &str| replace_ids(message, |stack| names.get(&stack).copied());
        assert_eq!(
            replace(&format!("web-1 belongs to stack {shop}, not {other}")),
            format!("web-1 belongs to stack shop, not {other}")
        );
        assert_eq!(replace(&format!("{shop}{shop}-ä-é-")), "shopshop-ä-é-");
        assert_eq!(replace("-"), "-");
    }
}
