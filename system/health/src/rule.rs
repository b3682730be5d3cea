//! Readiness rule of an object: a CEL expression in an annotation that is true if the object is ready.
//!
//! The rule is not trusted: its evaluation is bounded, and messages contain no value of the object.

use sindri_cel::{Cel, EvaluationError, Program, STEPS_MAX, Type};

use crate::health::Health;
use crate::object::Object;

/// Annotation with the rule.
pub const READY_ANNOTATION: &str = "sindri.dev/ready";
/// Maximum length of a rule.
pub const RULE_BYTES_MAX: usize = 4 * 1024;
/// Variables that are the object in a rule.
const VARIABLES: [&str; 2] = ["object", "self"];

/// Evaluates the rule of an object; `None` if it has none.
pub(crate) fn assess(object: Object<'_>) -> Option<Health> {
    let rule = object.annotation(READY_ANNOTATION)?;
    if rule.len() > RULE_BYTES_MAX {
        let message = format!("{READY_ANNOTATION}: {} bytes exceed the limit of {RULE_BYTES_MAX}", rule.len());
        return Some(Health::failing("RuleTooLong", message));
    }
    let program = match Program::compile(rule, &VARIABLES.map(|name| (name, Type::Dyn))) {
        Ok(program) => program,
        Err(issues) => {
            let location =
                issues.first().map(|issue| format!("line {}, column {}: {}", issue.line, issue.column, issue.message));
            let message = format!("{READY_ANNOTATION}, {}", location.unwrap_or_default());
            return Some(Health::failing("RuleInvalid", message));
        }
    };
    let result = program.evaluate(&VARIABLES.map(|name| (name, Cel::from_json(object.0))));
    Some(match result {
        Ok(Cel::Bool(true)) => Health::ready("RuleHolds", ""),
        Ok(Cel::Bool(false)) => Health::progressing("RuleDoesNotHold", format!("the rule is false: {rule}")),
        Ok(other) => {
            let message = format!(
                "{READY_ANNOTATION}: the rule returns a value of type {} instead of a boolean: {rule}",
                other.type_name()
            );
            Health::failing("RuleNotBoolean", message)
        }
        Err(error @ EvaluationError::Failed { .. }) => {
            Health::progressing("RuleNotEvaluated", format!("{}: {rule}", error.redacted()))
        }
        Err(EvaluationError::BudgetExceeded) => {
            let message = format!("{READY_ANNOTATION}: the rule takes more than {STEPS_MAX} steps: {rule}");
            Health::failing("RuleTooCostly", message)
        }
    })
}
