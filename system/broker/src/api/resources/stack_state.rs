//! State of a stack over all clusters, derived from the conditions that its agents report.
//!
//! A report about another revision than the expected one counts neither as applied nor as failed.

use sindri_model::Sequence;
use sindri_model::wire::{ConditionStatus, StackState, condition};

use crate::store::{AgentReport, StackReports};

/// The revision that an agent should report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// The newest revision; `None` if the stack has none yet.
    Revision(Option<Sequence>),
    /// The removal of the stack.
    Removal(Sequence),
    /// None: the agent has removed the stack, or never had it.
    Nothing,
}

/// Derives the state of a stack; the first state in the order of precedence wins.
pub(crate) fn derive_state(reports: &StackReports) -> StackState {
    let agents: Vec<(Expected, &AgentReport)> =
        reports.agents.iter().map(|report| (find_expected(reports, report), report)).collect();
    let any_agent = |condition: fn(Expected, &AgentReport) -> bool| {
        agents.iter().any(|(expected, report)| condition(*expected, report))
    };
    let is_deletion = reports.newest.is_some_and(|newest| newest.is_deletion_marker);
    if is_deletion && any_agent(|expected, _| matches!(expected, Expected::Removal(_))) {
        return StackState::Deleting;
    }
    if any_agent(|_, report| has_condition(report, condition::BLOCKED, ConditionStatus::True)) {
        return StackState::Blocked;
    }
    if any_agent(has_failed) {
        return StackState::Failed;
    }
    if any_agent(|expected, report| !is_done(expected, report, condition::APPLIED)) {
        return StackState::Progressing;
    }
    match any_agent(|expected, report| !is_done(expected, report, condition::READY)) {
        true => StackState::Applied,
        false => StackState::Ready,
    }
}

fn find_expected(reports: &StackReports, report: &AgentReport) -> Expected {
    match (report.pending_removal, reports.newest) {
        (Some(removal), _) => Expected::Removal(removal),
        (None, Some(newest)) if newest.is_deletion_marker => Expected::Nothing,
        (None, newest) => Expected::Revision(newest.map(|newest| newest.sequence)),
    }
}

/// Checks that the agent reports a condition as true for the expected revision. A removal that is confirmed is no longer
/// expected.
fn is_done(expected: Expected, report: &AgentReport, kind: &str) -> bool {
    match expected {
        Expected::Revision(_) => is_about(expected, report) && has_condition(report, kind, ConditionStatus::True),
        Expected::Removal(_) => false,
        Expected::Nothing => true,
    }
}

fn has_failed(expected: Expected, report: &AgentReport) -> bool {
    let failed = |kind| has_condition(report, kind, ConditionStatus::False);
    is_about(expected, report) && (failed(condition::ACCEPTED) || failed(condition::APPLIED))
}

fn is_about(expected: Expected, report: &AgentReport) -> bool {
    match expected {
        Expected::Revision(newest) => newest.is_some() && report.status.sequence_id == newest,
        Expected::Removal(removal) => report.status.sequence_id == Some(removal),
        Expected::Nothing => false,
    }
}

fn has_condition(report: &AgentReport, kind: &str, status: ConditionStatus) -> bool {
    report.status.conditions.iter().any(|condition| condition.kind == kind && condition.status == status)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use sindri_model::wire::{AgentStackStatus, Condition};
    use sindri_model::{AgentId, Entropy, GeneratorId, RevisionId};

    use super::*;
    use crate::store::NewestRevision;

    fn entropy() -> Entropy {
        Entropy::new(|bytes| bytes.fill(1))
    }

    /// Returns a report about a revision: `+` before a condition type means true, `-` false.
    fn report(sequence: i64, conditions: &[&str]) -> AgentReport {
        let condition = |text: &&str| Condition {
            kind: text[1..].to_owned(),
            status: if text.starts_with('+') { ConditionStatus::True } else { ConditionStatus::False },
            reason: String::new(),
            message: String::new(),
            last_transition_time: Timestamp::UNIX_EPOCH,
        };
        let status = AgentStackStatus {
            agent_id: AgentId::generate(&entropy()),
            name: "east".to_owned(),
            cluster_name: "c".to_owned(),
            deployment_object_id: Some(RevisionId::generate(&entropy())),
            sequence_id: Some(Sequence(sequence)),
            conditions: conditions.iter().map(condition).collect(),
        };
        AgentReport { status, pending_removal: None }
    }

    fn with_removal(removal: i64, report: AgentReport) -> AgentReport {
        AgentReport { pending_removal: Some(Sequence(removal)), ..report }
    }

    /// Derives the state with 7 as the newest revision.
    fn derive(is_deletion_marker: bool, agents: &[AgentReport]) -> StackState {
        let id = RevisionId::generate(&entropy());
        let newest = Some(NewestRevision { id, sequence: Sequence(7), is_deletion_marker });
        derive_state(&StackReports { generator: GeneratorId::generate(&entropy()), newest, agents: agents.to_vec() })
    }

    fn no_report() -> AgentReport {
        let mut report = report(0, &[]);
        report.status.sequence_id = None;
        report
    }

    const DONE: [&str; 3] = ["+Accepted", "+Applied", "+Ready"];

    #[test]
    fn applied_and_ready_are_separate_states() {
        assert_eq!(derive(false, &[report(7, &DONE), report(7, &["+Applied"])]), StackState::Applied);
        assert_eq!(derive(false, &[report(7, &DONE), report(7, &["+Applied", "-Ready"])]), StackState::Applied);
        assert_eq!(derive(false, &[report(7, &["+Ready"])]), StackState::Progressing);
        assert_eq!(derive(false, &[report(7, &DONE), report(7, &DONE)]), StackState::Ready);
    }

    #[test]
    fn a_report_about_an_older_revision_counts_neither_as_done_nor_as_failed() {
        assert_eq!(derive(false, &[report(7, &DONE), report(6, &DONE)]), StackState::Progressing);
        assert_eq!(derive(false, &[report(6, &["-Applied"])]), StackState::Progressing);
        assert_eq!(derive(false, &[report(7, &DONE), no_report()]), StackState::Progressing);
    }

    #[test]
    fn the_first_in_the_order_of_precedence_wins() {
        let (blocked, failed) = (report(7, &["+Blocked"]), report(7, &["+Accepted", "-Applied"]));
        let (rejected, progressing) = (report(7, &["-Accepted"]), report(6, &DONE));
        assert_eq!(derive(false, &[progressing.clone(), failed.clone()]), StackState::Failed);
        assert_eq!(derive(false, &[progressing.clone(), rejected.clone()]), StackState::Failed);
        assert_eq!(derive(false, &[failed.clone(), blocked.clone(), progressing]), StackState::Blocked);
        assert_eq!(derive(true, &[with_removal(7, blocked)]), StackState::Deleting);
        assert_eq!(derive(true, &[with_removal(7, failed)]), StackState::Deleting);
    }

    #[test]
    fn a_removal_is_done_when_it_is_confirmed() {
        assert_eq!(derive(true, &[no_report(), with_removal(7, report(7, &DONE))]), StackState::Deleting);
        assert_eq!(derive(true, &[no_report()]), StackState::Ready, "the removal is confirmed");
        // Only this agent has to remove the stack.
        assert_eq!(derive(false, &[report(7, &DONE), with_removal(9, report(9, &DONE))]), StackState::Progressing);
        assert_eq!(derive(false, &[report(7, &DONE), with_removal(9, report(9, &["-Applied"]))]), StackState::Failed);
    }

    #[test]
    fn a_stack_without_a_revision_is_not_ready_on_any_agent() {
        let reports =
            StackReports { generator: GeneratorId::generate(&entropy()), newest: None, agents: vec![no_report()] };
        assert_eq!(derive_state(&reports), StackState::Progressing);
    }
}
