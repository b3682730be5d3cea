//! Conditions of a stack, reported when they differ from the last report.

use sindri_model::wire::{ConditionStatus, ReportedCondition, condition};

use super::drift::PersistentDrift;
use crate::pass::summary::{PassError, PassSummary};

/// Longer messages are cut.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// Condition `Ready`: health of the applied objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyCondition {
    /// `Unknown` until the objects were read.
    pub status: ConditionStatus,
    /// Machine-readable reason.
    pub reason: String,
    /// Message for people.
    pub message: String,
}

/// State of a stack after a pass, from which its conditions follow.
pub struct ConditionInputs<'a> {
    /// True if the stack is being removed.
    pub is_removal: bool,
    /// Result of the pass.
    pub pass: &'a Result<PassSummary, PassError>,
    /// Drift that is reported.
    pub drift: Option<PersistentDrift>,
    /// Health of the objects.
    pub ready: ReadyCondition,
}

impl ConditionInputs<'_> {
    /// Returns all conditions.
    pub fn to_conditions(&self) -> Vec<ReportedCondition> {
        vec![self.accepted(), self.applied(), self.ready(), self.drifted(), self.blocked(), self.deleting()]
    }

    fn accepted(&self) -> ReportedCondition {
        match self.pass {
            Err(error) if error.is_caused_by_bundle() => condition_false(condition::ACCEPTED, "NotAccepted", error),
            Ok(_) | Err(_) => condition_true(condition::ACCEPTED, "Accepted", ""),
        }
    }

    fn applied(&self) -> ReportedCondition {
        match self.pass {
            Err(error) => condition_false(condition::APPLIED, "Failed", error),
            Ok(PassSummary { is_suspended: true, .. }) => condition_false(
                condition::APPLIED,
                "Suspended",
                "the stack is suspended on this cluster, and nothing is written",
            ),
            Ok(summary) if !summary.unreadable.is_empty() => {
                condition_false(condition::APPLIED, "Failed", &summary.describe_unreadable().unwrap_or_default())
            }
            Ok(PassSummary { held: Some(held), .. }) => condition_false(condition::APPLIED, "HeldBack", held),
            Ok(PassSummary { waiting: Some(waiting), .. }) => {
                condition_false(condition::APPLIED, "Progressing", waiting)
            }
            Ok(summary) if !summary.terminating.is_empty() => {
                condition_false(condition::APPLIED, "Progressing", &summary.describe_terminating("being deleted"))
            }
            Ok(PassSummary { rewritten_fields, .. }) if !rewritten_fields.is_empty() => {
                let fields: Vec<String> = rewritten_fields.iter().map(|(key, path)| format!("{key}: {path}")).collect();
                let message = format!(
                    "the cluster stores other values than were applied, for example because of an admission webhook: {}",
                    fields.join(", ")
                );
                condition_true(condition::APPLIED, condition::REWRITTEN, &message)
            }
            Ok(_) => condition_true(condition::APPLIED, "Applied", ""),
        }
    }

    fn ready(&self) -> ReportedCondition {
        let ReadyCondition { status, reason, message } = &self.ready;
        build_condition(condition::READY, *status, reason, message)
    }

    fn drifted(&self) -> ReportedCondition {
        if let Ok(PassSummary { is_suspended: true, was_applied: false, .. }) = self.pass {
            let message = "the newest revision is not applied, because the stack is suspended";
            return build_condition(condition::DRIFTED, ConditionStatus::Unknown, "NotApplied", message);
        }
        match &self.drift {
            None => condition_false(condition::DRIFTED, "AsDeclared", ""),
            Some(PersistentDrift::Detected(message)) => condition_true(condition::DRIFTED, "Detected", message),
            Some(PersistentDrift::Recurring { message, .. }) => {
                condition_true(condition::DRIFTED, "ComesBack", message)
            }
            Some(PersistentDrift::Uncorrectable(message)) => {
                condition_true(condition::DRIFTED, "CannotBeCorrected", message)
            }
        }
    }

    fn blocked(&self) -> ReportedCondition {
        match self.pass {
            Ok(PassSummary { held: Some(held), .. }) => {
                condition_true(condition::BLOCKED, "WaitsForApproval", &held.to_string())
            }
            Ok(_) | Err(_) => condition_false(condition::BLOCKED, "NotBlocked", ""),
        }
    }

    fn deleting(&self) -> ReportedCondition {
        if self.is_removal {
            condition_true(condition::DELETING, "Removal", "the stack is being removed from this cluster")
        } else {
            condition_false(condition::DELETING, "Wanted", "")
        }
    }
}

fn condition_true(condition_type: &str, reason: &str, message: &str) -> ReportedCondition {
    build_condition(condition_type, ConditionStatus::True, reason, message)
}

fn condition_false(condition_type: &str, reason: &str, message: &(impl ToString + ?Sized)) -> ReportedCondition {
    build_condition(condition_type, ConditionStatus::False, reason, &message.to_string())
}

fn build_condition(condition_type: &str, status: ConditionStatus, reason: &str, message: &str) -> ReportedCondition {
    let message = message.chars().take(MESSAGE_CHARS_MAX).collect();
    ReportedCondition { kind: condition_type.to_owned(), status, reason: reason.to_owned(), message }
}
