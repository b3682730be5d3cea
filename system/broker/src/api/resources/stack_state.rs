//! How a stack is, everywhere together: one word of what every agent says.
//!
//! What an agent says about another revision than the one that is wanted of it never counts as done.

use sindri_model::Sequence;
use sindri_model::wire::{ConditionStatus, StackState, condition};

use crate::store::{AgentReport, StackReports};

/// What is wanted of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// That it has the newest revision; without a number there is none yet.
    Have(Option<Sequence>),
    /// That it removes the stack and confirms it.
    Remove(Sequence),
    /// Nothing: it has removed the stack, or never had it.
    Nothing,
}

/// The word.
pub(crate) fn state(reports: &StackReports) -> StackState {
    let agents: Vec<(Wanted, &AgentReport)> =
        reports.agents.iter().map(|report| (wanted(reports, report), report)).collect();
    let is_any = |is_so: fn(Wanted, &AgentReport) -> bool| agents.iter().any(|(wanted, report)| is_so(*wanted, report));
    let is_marked = reports.newest.is_some_and(|newest| newest.is_deletion_marker);
    if is_marked && is_any(|wanted, _| matches!(wanted, Wanted::Remove(_))) {
        return StackState::Deleting;
    }
    if is_any(|_, report| is(report, condition::BLOCKED, ConditionStatus::True)) {
        return StackState::Blocked;
    }
    if is_any(has_failed) {
        return StackState::Failed;
    }
    if is_any(|wanted, report| !is_done(wanted, report, condition::APPLIED)) {
        return StackState::Progressing;
    }
    match is_any(|wanted, report| !is_done(wanted, report, condition::READY)) {
        true => StackState::Applied,
        false => StackState::Ready,
    }
}

fn wanted(reports: &StackReports, report: &AgentReport) -> Wanted {
    match (report.pending_removal, reports.newest) {
        (Some(removal), _) => Wanted::Remove(removal),
        (None, Some(newest)) if newest.is_deletion_marker => Wanted::Nothing,
        (None, newest) => Wanted::Have(newest.map(|newest| newest.sequence)),
    }
}

/// Whether it says so about what is wanted of it. A removal is done when it is confirmed, and then nothing is wanted.
fn is_done(wanted: Wanted, report: &AgentReport, kind: &str) -> bool {
    match wanted {
        Wanted::Have(_) => is_about(wanted, report) && is(report, kind, ConditionStatus::True),
        Wanted::Remove(_) => false,
        Wanted::Nothing => true,
    }
}

fn has_failed(wanted: Wanted, report: &AgentReport) -> bool {
    let failed = |kind| is(report, kind, ConditionStatus::False);
    is_about(wanted, report) && (failed(condition::ACCEPTED) || failed(condition::APPLIED))
}

fn is_about(wanted: Wanted, report: &AgentReport) -> bool {
    match wanted {
        Wanted::Have(newest) => newest.is_some() && report.status.sequence_id == newest,
        Wanted::Remove(removal) => report.status.sequence_id == Some(removal),
        Wanted::Nothing => false,
    }
}

fn is(report: &AgentReport, kind: &str, status: ConditionStatus) -> bool {
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

    /// An agent that speaks of a revision: `+` before a type means that it is true, `-` that it is not.
    fn agent(sequence: i64, said: &[&str]) -> AgentReport {
        let condition = |said: &&str| Condition {
            kind: said[1..].to_owned(),
            status: if said.starts_with('+') { ConditionStatus::True } else { ConditionStatus::False },
            reason: String::new(),
            message: String::new(),
            last_transition_time: Timestamp::UNIX_EPOCH,
        };
        let said = AgentStackStatus {
            agent_id: AgentId::mint(&entropy()),
            name: "east".to_owned(),
            cluster_name: "c".to_owned(),
            deployment_object_id: Some(RevisionId::mint(&entropy())),
            sequence_id: Some(Sequence(sequence)),
            conditions: said.iter().map(condition).collect(),
        };
        AgentReport { status: said, pending_removal: None }
    }

    fn owing(removal: i64, report: AgentReport) -> AgentReport {
        AgentReport { pending_removal: Some(Sequence(removal)), ..report }
    }

    /// With 7 as the newest revision.
    fn state_of(is_deletion_marker: bool, agents: &[AgentReport]) -> StackState {
        let id = RevisionId::mint(&entropy());
        let newest = Some(NewestRevision { id, sequence: Sequence(7), is_deletion_marker });
        state(&StackReports { generator: GeneratorId::mint(&entropy()), newest, agents: agents.to_vec() })
    }

    fn silent() -> AgentReport {
        let mut report = agent(0, &[]);
        report.status.sequence_id = None;
        report
    }

    const DONE: [&str; 3] = ["+Accepted", "+Applied", "+Ready"];

    #[test]
    fn applied_and_ready_are_two_facts() {
        assert_eq!(state_of(false, &[agent(7, &DONE), agent(7, &["+Applied"])]), StackState::Applied);
        assert_eq!(state_of(false, &[agent(7, &DONE), agent(7, &["+Applied", "-Ready"])]), StackState::Applied);
        assert_eq!(state_of(false, &[agent(7, &["+Ready"])]), StackState::Progressing);
        assert_eq!(state_of(false, &[agent(7, &DONE), agent(7, &DONE)]), StackState::Ready);
    }

    #[test]
    fn what_is_said_about_an_older_revision_never_counts_as_done_and_never_as_failed() {
        assert_eq!(state_of(false, &[agent(7, &DONE), agent(6, &DONE)]), StackState::Progressing);
        assert_eq!(state_of(false, &[agent(6, &["-Applied"])]), StackState::Progressing);
        assert_eq!(state_of(false, &[agent(7, &DONE), silent()]), StackState::Progressing);
    }

    #[test]
    fn the_first_in_the_order_of_precedence_wins() {
        let (blocked, failed) = (agent(7, &["+Blocked"]), agent(7, &["+Accepted", "-Applied"]));
        let (refused, progressing) = (agent(7, &["-Accepted"]), agent(6, &DONE));
        assert_eq!(state_of(false, &[progressing.clone(), failed.clone()]), StackState::Failed);
        assert_eq!(state_of(false, &[progressing.clone(), refused.clone()]), StackState::Failed);
        assert_eq!(state_of(false, &[failed.clone(), blocked.clone(), progressing]), StackState::Blocked);
        assert_eq!(state_of(true, &[owing(7, blocked)]), StackState::Deleting);
        assert_eq!(state_of(true, &[owing(7, failed)]), StackState::Deleting);
    }

    #[test]
    fn a_removal_is_done_when_it_is_confirmed() {
        assert_eq!(state_of(true, &[silent(), owing(7, agent(7, &DONE))]), StackState::Deleting);
        assert_eq!(state_of(true, &[silent()]), StackState::Ready, "nothing is wanted of it any more");
        // It was taken away from this one only.
        assert_eq!(state_of(false, &[agent(7, &DONE), owing(9, agent(9, &DONE))]), StackState::Progressing);
        assert_eq!(state_of(false, &[agent(7, &DONE), owing(9, agent(9, &["-Applied"]))]), StackState::Failed);
    }

    #[test]
    fn a_stack_without_a_revision_is_not_ready_on_any_agent() {
        let reports = StackReports { generator: GeneratorId::mint(&entropy()), newest: None, agents: vec![silent()] };
        assert_eq!(state(&reports), StackState::Progressing);
    }
}
