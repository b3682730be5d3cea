//! A rule that an object carries: an expression in CEL that says when the object is ready.
//!
//! Whoever may write an annotation writes the rule, so nothing that it says is trusted, and no value of the object is
//! part of what is said about it.

use sindri_cel::{Cel, Failure, Program, STEPS_MAX, Type};

use crate::health::Health;
use crate::object::Object;

/// The annotation that holds the rule.
pub const READY_ANNOTATION: &str = "sindri.dev/ready";
/// The longest rule.
pub const RULE_BYTES_MAX: usize = 4 * 1024;
/// What the object is called in a rule.
const NAMES: [&str; 2] = ["object", "self"];

/// What the rule of an object says; `None` where it has none.
pub(crate) fn assess(object: Object<'_>) -> Option<Health> {
    let rule = object.annotation(READY_ANNOTATION)?;
    if rule.len() > RULE_BYTES_MAX {
        let message = format!("{READY_ANNOTATION}: {} bytes are more than the limit of {RULE_BYTES_MAX}", rule.len());
        return Some(Health::failing("RuleTooLong", message));
    }
    let program = match Program::compile(rule, &NAMES.map(|name| (name, Type::Dyn))) {
        Ok(program) => program,
        Err(issues) => {
            let place =
                issues.first().map(|issue| format!("line {}, column {}: {}", issue.line, issue.column, issue.words));
            let message = format!("{READY_ANNOTATION}, {}", place.unwrap_or_default());
            return Some(Health::failing("RuleInvalid", message));
        }
    };
    let result = program.evaluate(&NAMES.map(|name| (name, Cel::of(object.0))));
    Some(match result {
        Ok(Cel::Bool(true)) => Health::ready("RuleHolds", ""),
        Ok(Cel::Bool(false)) => Health::progressing("RuleDoesNotHold", format!("not yet: {rule}")),
        Ok(other) => {
            let message =
                format!("{READY_ANNOTATION}: it gives a value of type {}, not true or false: {rule}", other.kind());
            Health::failing("RuleNotBoolean", message)
        }
        Err(failure @ Failure::Wrong { .. }) => {
            Health::progressing("RuleNotEvaluated", format!("{}: {rule}", failure.discreet()))
        }
        Err(Failure::Exhausted) => {
            let message = format!("{READY_ANNOTATION}: it takes more than {STEPS_MAX} steps: {rule}");
            Health::failing("RuleTooCostly", message)
        }
    })
}
