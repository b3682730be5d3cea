//! A rule that an object carries: an expression in CEL that says when the object is ready.
//!
//! Whoever may write an annotation writes the rule, so nothing that it says is trusted: it is bounded in length, in
//! parts and in depth before it is parsed and after, and in steps while it is evaluated.

mod evaluate;
mod functions;
mod node;
mod parse;
mod value;

use crate::health::Health;
use crate::object::Object;
use evaluate::{Failure, STEPS_MAX, evaluate};
use value::Cel;

/// The annotation that holds the rule.
pub const READY_ANNOTATION: &str = "sindri.dev/ready";
/// The longest rule.
pub const RULE_BYTES_MAX: usize = 4 * 1024;

/// What the rule of an object says; `None` where it has none.
pub(crate) fn assess(object: Object<'_>) -> Option<Health> {
    let rule = object.annotation(READY_ANNOTATION)?;
    if rule.len() > RULE_BYTES_MAX {
        let message = format!("{READY_ANNOTATION}: {} bytes are more than the limit of {RULE_BYTES_MAX}", rule.len());
        return Some(Health::failing("RuleTooLong", message));
    }
    let node = match parse::parse(rule) {
        Ok(node) => node,
        Err(error) => return Some(Health::failing("RuleInvalid", format!("{READY_ANNOTATION}, {error}"))),
    };
    Some(match evaluate(&node, object.0) {
        Ok(Cel::Bool(true)) => Health::ready("RuleHolds", ""),
        Ok(Cel::Bool(false)) => Health::progressing("RuleDoesNotHold", format!("not yet: {rule}")),
        Ok(other) => {
            let message = format!("{READY_ANNOTATION}: it gives {}, not true or false: {rule}", other.kind());
            Health::failing("RuleNotBoolean", message)
        }
        Err(Failure::Wrong(words)) => Health::progressing("RuleNotEvaluated", format!("{words}: {rule}")),
        Err(Failure::Exhausted) => {
            let message = format!("{READY_ANNOTATION}: it takes more than {STEPS_MAX} steps: {rule}");
            Health::failing("RuleTooCostly", message)
        }
    })
}
