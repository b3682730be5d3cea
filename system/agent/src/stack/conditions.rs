//! How a stack is, as conditions: levels that are told when they differ from what the broker heard last.

use sindri_model::wire::{ConditionStatus, ReportedCondition, condition};

use crate::pass::run::{PassError, Passed};
use crate::stack::drift::Persistent;

/// Longer messages are cut.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// Whether what was applied works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// `Unknown` as long as nobody has looked.
    pub status: ConditionStatus,
    /// One word.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// What is known of a stack after a pass.
pub(crate) struct Standing<'a> {
    pub is_removal: bool,
    pub passed: &'a Result<Passed, PassError>,
    pub drift: Option<Persistent>,
    pub ready: Ready,
}

impl Standing<'_> {
    /// Every condition, always all of them.
    pub(crate) fn conditions(&self) -> Vec<ReportedCondition> {
        vec![self.accepted(), self.applied(), self.ready(), self.drifted(), self.blocked(), self.deleting()]
    }

    fn accepted(&self) -> ReportedCondition {
        match self.passed {
            Err(error) if error.is_of_the_bundle() => no(condition::ACCEPTED, "NotAccepted", error),
            Ok(_) | Err(_) => yes(condition::ACCEPTED, "Accepted", ""),
        }
    }

    fn applied(&self) -> ReportedCondition {
        match self.passed {
            Err(error) => no(condition::APPLIED, "Failed", error),
            Ok(Passed { held: Some(held), .. }) => no(condition::APPLIED, "HeldBack", held),
            Ok(Passed { leaving, .. }) if !leaving.is_empty() => {
                let leaving: Vec<String> = leaving.iter().map(ToString::to_string).collect();
                no(condition::APPLIED, "Progressing", &format!("being deleted: {}", leaving.join(", ")))
            }
            Ok(Passed { rewritten, .. }) if !rewritten.is_empty() => {
                let places: Vec<String> = rewritten.iter().map(|(key, path)| format!("{key}: {path}")).collect();
                let places = places.join(", ");
                let message = format!("not as it was applied, because something in the cluster rewrites it: {places}");
                yes(condition::APPLIED, condition::REWRITTEN, &message)
            }
            Ok(_) => yes(condition::APPLIED, "Applied", ""),
        }
    }

    fn ready(&self) -> ReportedCondition {
        let Ready { status, reason, message } = &self.ready;
        made(condition::READY, *status, reason, message)
    }

    fn drifted(&self) -> ReportedCondition {
        match &self.drift {
            None => no(condition::DRIFTED, "AsDeclared", ""),
            Some(Persistent::Left(message)) => yes(condition::DRIFTED, "Detected", message),
            Some(Persistent::ComesBack(message)) => yes(condition::DRIFTED, "ComesBack", message),
            Some(Persistent::Stays(message)) => yes(condition::DRIFTED, "CannotBeCorrected", message),
        }
    }

    fn blocked(&self) -> ReportedCondition {
        match self.passed {
            Ok(Passed { held: Some(held), .. }) => yes(condition::BLOCKED, "WaitsForApproval", &held.to_string()),
            Ok(_) | Err(_) => no(condition::BLOCKED, "NotBlocked", ""),
        }
    }

    fn deleting(&self) -> ReportedCondition {
        if self.is_removal {
            yes(condition::DELETING, "Removal", "the stack is being removed from this cluster")
        } else {
            no(condition::DELETING, "Wanted", "")
        }
    }
}

fn yes(kind: &str, reason: &str, message: &str) -> ReportedCondition {
    made(kind, ConditionStatus::True, reason, message)
}

fn no(kind: &str, reason: &str, message: &(impl ToString + ?Sized)) -> ReportedCondition {
    made(kind, ConditionStatus::False, reason, &message.to_string())
}

fn made(kind: &str, status: ConditionStatus, reason: &str, message: &str) -> ReportedCondition {
    let message = message.chars().take(MESSAGE_CHARS_MAX).collect();
    ReportedCondition { kind: kind.to_owned(), status, reason: reason.to_owned(), message }
}
