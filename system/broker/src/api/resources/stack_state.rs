//! State of a stack on one cluster, and over all clusters, derived from what agents report.
//!
//! A report about another revision than the expected one counts neither as applied nor as failed.

use jiff::Timestamp;
use sindri_model::Sequence;
use sindri_model::wire::{AssignmentState, StackState};

use crate::store::{ConditionSummary, NewestRevision, ReportedAssignment, ReportedPhase};

/// Newest revision of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newest {
    pub sequence: Sequence,
    pub is_deletion_marker: bool,
}

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

/// State of a stack on one cluster according to the reports of its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReportedState<'a> {
    state: AssignmentState,
    /// True if the newest revision is applied.
    is_applied: bool,
    /// True if the newest revision is ready.
    is_ready: bool,
    /// Time since which the state lasts.
    pub since: Option<Timestamp>,
    /// Reason in CamelCase.
    pub reason: Option<&'a str>,
    /// Message for people.
    pub message: Option<&'a str>,
}

impl ReportedState<'_> {
    fn without_cause(state: AssignmentState) -> Self {
        let is_done = state.is_done();
        Self { state, is_applied: is_done, is_ready: is_done, since: None, reason: None, message: None }
    }

    fn because(reason: &'static str, state: AssignmentState) -> Self {
        Self { reason: Some(reason), ..Self::without_cause(state) }
    }

    /// Returns the state of the assignment. A policy that suspends the stack counts before the agent has reported it, and a stack
    /// that is no longer suspended is on its way.
    pub(crate) fn assignment_state(&self, is_suspended: bool) -> AssignmentState {
        match self.state {
            AssignmentState::Removed => AssignmentState::Removed,
            _ if is_suspended => AssignmentState::Suspended,
            AssignmentState::Suspended => AssignmentState::Progressing,
            other => other,
        }
    }

    fn stack_state(&self) -> StackState {
        match self.state {
            AssignmentState::Blocked => StackState::Blocked,
            _ if self.is_ready => StackState::Ready,
            _ if self.is_applied => StackState::Applied,
            AssignmentState::Failed => StackState::Failed,
            _ => StackState::Progressing,
        }
    }
}

/// Derives the state of a stack over all clusters; the first state in the order of precedence wins.
pub(crate) fn derive_state(newest: Option<NewestRevision>, assignments: &[ReportedAssignment]) -> StackState {
    let newest =
        newest.map(|newest| Newest { sequence: newest.sequence, is_deletion_marker: newest.is_deletion_marker });
    let is_deletion = newest.is_some_and(|newest| newest.is_deletion_marker);
    if is_deletion && assignments.iter().any(|reported| reported.pending_removal.is_some()) {
        return StackState::Deleting;
    }
    let states = assignments.iter().map(|reported| derive_reported(newest, reported).stack_state());
    states.min().unwrap_or(StackState::Ready)
}

/// Derives the state of a stack on one cluster.
pub(crate) fn derive_reported(newest: Option<Newest>, reported: &ReportedAssignment) -> ReportedState<'_> {
    let expected = match (reported.pending_removal, newest) {
        (Some(removal), _) => Expected::Removal(removal),
        (None, Some(newest)) if newest.is_deletion_marker => Expected::Nothing,
        (None, newest) => Expected::Revision(newest.map(|newest| newest.sequence)),
    };
    let is_blocked = |(_, summary): &&(_, ConditionSummary)| summary.phase == ReportedPhase::Blocked;
    if let Some((_, blocked)) = reported.summary.as_ref().filter(is_blocked) {
        return caused_by(blocked, AssignmentState::Blocked);
    }
    let (sequence, unreported) = match expected {
        Expected::Nothing => return ReportedState::without_cause(AssignmentState::Removed),
        Expected::Revision(None) => return ReportedState::because("NoRevision", AssignmentState::Pending),
        Expected::Revision(Some(sequence)) => {
            (sequence, ReportedState::because("NotReported", AssignmentState::Pending))
        }
        Expected::Removal(sequence) => (sequence, ReportedState::because("NotConfirmed", AssignmentState::Removing)),
    };
    let is_removal = matches!(expected, Expected::Removal(_));
    match &reported.summary {
        Some((about, summary)) if *about == sequence && is_removal => derive_removal(summary),
        Some((about, summary)) if *about == sequence => derive_from_conditions(summary),
        other => derive_from_outcome(reported, sequence, is_removal, other.is_some()).unwrap_or(unreported),
    }
}

fn caused_by(summary: &ConditionSummary, state: AssignmentState) -> ReportedState<'_> {
    ReportedState {
        since: summary.since,
        reason: summary.reason.as_deref(),
        message: summary.message.as_deref(),
        ..ReportedState::without_cause(state)
    }
}

fn derive_removal(summary: &ConditionSummary) -> ReportedState<'_> {
    match summary.phase {
        ReportedPhase::Failed => caused_by(summary, AssignmentState::Failed),
        _ => caused_by(summary, AssignmentState::Removing),
    }
}

fn derive_from_conditions(summary: &ConditionSummary) -> ReportedState<'_> {
    let applied = |state| ReportedState { is_applied: true, ..caused_by(summary, state) };
    match summary.phase {
        ReportedPhase::Blocked => caused_by(summary, AssignmentState::Blocked),
        ReportedPhase::Failed => caused_by(summary, AssignmentState::Failed),
        ReportedPhase::Suspended => caused_by(summary, AssignmentState::Suspended),
        ReportedPhase::Progressing => caused_by(summary, AssignmentState::Progressing),
        ReportedPhase::Failing => applied(AssignmentState::Failed),
        ReportedPhase::Drifted => ReportedState { is_ready: true, ..applied(AssignmentState::Drifted) },
        ReportedPhase::DriftedNotReady => applied(AssignmentState::Drifted),
        ReportedPhase::NotReady => applied(AssignmentState::Progressing),
        ReportedPhase::Ready => caused_by(summary, AssignmentState::Ready),
    }
}

/// Derives the state from the last outcome, if it is about the expected revision. An agent that reports no conditions at all has
/// nothing more to say after a success.
fn derive_from_outcome(
    reported: &ReportedAssignment,
    expected: Sequence,
    is_removal: bool,
    has_conditions: bool,
) -> Option<ReportedState<'_>> {
    let outcome = reported.outcome.as_ref().filter(|outcome| outcome.sequence == expected)?;
    let state = match (outcome.succeeded, is_removal, has_conditions) {
        (false, ..) => ReportedState::because("Failed", AssignmentState::Failed),
        (true, true, _) => return None,
        (true, false, true) => {
            ReportedState { is_applied: true, ..ReportedState::because("Applied", AssignmentState::Progressing) }
        }
        (true, false, false) => ReportedState::without_cause(AssignmentState::Ready),
    };
    Some(ReportedState { since: outcome.reported_at, message: outcome.message.as_deref(), ..state })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use sindri_model::wire::{Condition, ConditionStatus};
    use sindri_model::{Entropy, RevisionId};

    use super::*;
    use crate::store::ReportedOutcome;

    /// Returns a report about a revision: `+` before a condition type means true, `-` false; its reason may follow.
    fn report(sequence: i64, conditions: &[&str]) -> ReportedAssignment {
        let condition = |text: &&str| Condition {
            kind: text[1..].split(' ').next().unwrap_or_default().to_owned(),
            status: if text.starts_with('+') { ConditionStatus::True } else { ConditionStatus::False },
            reason: text.split(' ').nth(1).unwrap_or_default().to_owned(),
            message: String::new(),
            last_transition_time: Timestamp::UNIX_EPOCH,
        };
        let conditions: Vec<Condition> = conditions.iter().map(condition).collect();
        let summary = Some((Sequence(sequence), ConditionSummary::from_conditions(&conditions)));
        ReportedAssignment { summary, ..ReportedAssignment::default() }
    }

    fn with_removal(removal: i64, report: ReportedAssignment) -> ReportedAssignment {
        ReportedAssignment { pending_removal: Some(Sequence(removal)), ..report }
    }

    /// Derives the state with 7 as the newest revision.
    fn derive(is_deletion_marker: bool, agents: &[ReportedAssignment]) -> StackState {
        let id = RevisionId::generate(&Entropy::new(|bytes| bytes.fill(1)));
        derive_state(Some(NewestRevision { id, sequence: Sequence(7), is_deletion_marker }), agents)
    }

    fn no_report() -> ReportedAssignment {
        ReportedAssignment::default()
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
        assert_eq!(derive_state(None, &[no_report()]), StackState::Progressing);
    }

    #[test]
    fn a_revision_that_waits_or_is_suspended_has_not_failed() {
        assert_eq!(derive(false, &[report(7, &["+Accepted", "-Applied Progressing"])]), StackState::Progressing);
        assert_eq!(derive(false, &[report(7, &["+Accepted", "-Applied Suspended"])]), StackState::Progressing);
    }

    /// Derives the state on one cluster with 7 as the newest revision.
    fn assignment(report: &ReportedAssignment, is_suspended: bool) -> (AssignmentState, Option<String>) {
        let newest = Newest { sequence: Sequence(7), is_deletion_marker: false };
        let derived = derive_reported(Some(newest), report);
        (derived.assignment_state(is_suspended), derived.reason.map(str::to_owned))
    }

    #[test]
    fn a_cluster_has_one_state_with_its_reason() {
        use AssignmentState::*;
        for (report, state, reason) in [
            (report(7, &DONE), Ready, None),
            (report(7, &["+Applied", "-Ready Failing"]), Failed, Some("Failing")),
            (report(7, &["+Applied", "-Ready Progressing"]), Progressing, Some("Progressing")),
            (report(7, &["+Applied", "+Ready", "+Drifted Detected"]), Drifted, Some("Detected")),
            (report(7, &["-Applied HeldBack", "+Blocked WaitsForApproval"]), Blocked, Some("WaitsForApproval")),
            (report(6, &["+Blocked WaitsForApproval"]), Blocked, Some("WaitsForApproval")),
            (report(7, &["-Applied Suspended"]), Progressing, Some("Suspended")),
            (report(6, &DONE), Pending, Some("NotReported")),
            (no_report(), Pending, Some("NotReported")),
            (with_removal(9, no_report()), Removing, Some("NotConfirmed")),
            (with_removal(9, report(9, &["-Applied Progressing"])), Removing, Some("Progressing")),
            (with_removal(9, report(9, &["-Applied Failed"])), Failed, Some("Failed")),
            (with_removal(9, report(9, &["+Blocked WaitsForApproval"])), Blocked, Some("WaitsForApproval")),
        ] {
            assert_eq!(assignment(&report, false), (state, reason.map(str::to_owned)), "{report:?}");
        }
        assert_eq!(assignment(&report(7, &DONE), true).0, Suspended, "before the agent has reported it");
    }

    #[test]
    fn an_outcome_counts_without_conditions_about_the_same_revision() {
        let outcome = |sequence, succeeded, mut report: ReportedAssignment| {
            let (sequence, message) = (Sequence(sequence), Some("no room".to_owned()));
            report.outcome = Some(ReportedOutcome { sequence, succeeded, reported_at: None, message });
            assignment(&report, false).0
        };
        assert_eq!(outcome(7, false, no_report()), AssignmentState::Failed);
        assert_eq!(outcome(7, true, no_report()), AssignmentState::Ready, "an agent that reports no conditions");
        assert_eq!(outcome(7, true, report(6, &DONE)), AssignmentState::Progressing, "its conditions will follow");
        assert_eq!(outcome(6, false, no_report()), AssignmentState::Pending);
        assert_eq!(outcome(7, false, report(7, &DONE)), AssignmentState::Ready);
        assert_eq!(outcome(9, true, with_removal(9, no_report())), AssignmentState::Removing);
    }
}
