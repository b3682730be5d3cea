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
    let stacks = overview.stacks.iter().flat_map(|stack| describe_stack(stack, clusters, names));
    format_lines(agents.collect(), output) + &format_lines(stacks.collect(), output)
}

/// A line, and the colour of its first words.
struct Line {
    subject: String,
    style: Style,
    text: String,
}

fn format_lines(lines: Vec<Line>, output: &Output) -> String {
    let hidden = lines.len().saturating_sub(LINES_MAX);
    let more = if hidden == 0 { String::new() } else { format!("and {hidden} more; --output json has all\n") };
    let formatted = lines.iter().take(LINES_MAX).map(|Line { subject, style, text }| {
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
    Some(Line { subject: format!("agent {name} of cluster {cluster_name}"), style, text })
}

/// Describes the causes of a stack; the same cause on several clusters is one line.
fn describe_stack(stack: &StackOverview, clusters: &ClusterNames, names: &StackNames) -> Vec<Line> {
    if stack.assignments.is_empty() {
        let text = format!("is not targeted at any cluster: sindri target {} AGENT", names.argument(stack));
        return vec![Line { subject: names.show(stack), style: Style::Warning, text }];
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
        Line { subject, style: style_of_state(state), text: cause }
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
    use super::*;

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
