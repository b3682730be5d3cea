//! Placeholders in the texts of a scenario: `${STACK}` is the id of a stack, `${repeat x 300}` the letter x three hundred
//! times.

use super::state::Interpreter;
use crate::environment::StepError;

/// Longest repetition in a text: a little more than the largest request that a server accepts.
const REPEAT_BYTES_MAX: usize = 4 * 1024 * 1024;
const REPEAT: &str = "${repeat ";

impl Interpreter<'_> {
    /// Replaces the placeholders of a text.
    pub(super) fn substitute(&self, text: &str) -> Result<String, StepError> {
        let expected = self.expected.borrow();
        let with_ids = expected
            .stacks
            .iter()
            .fold(text.to_owned(), |text, (name, stack)| text.replace(&format!("${{{name}}}"), &stack.id.to_string()));
        expand_repetitions(&with_ids).ok_or_else(|| StepError::Failed(format!("{REPEAT}…}} takes a text and a number")))
    }
}

/// Expands the repetitions of a text; `None` if one is malformed or too long.
fn expand_repetitions(text: &str) -> Option<String> {
    let (mut rest, mut done) = (text, String::new());
    while let Some((before, after)) = rest.split_once(REPEAT) {
        let (word, after) = after.split_once('}')?;
        let (repeated, times) = word.rsplit_once(' ')?;
        let times: usize = times.parse().ok()?;
        if repeated.len().checked_mul(times)? > REPEAT_BYTES_MAX {
            return None;
        }
        done.push_str(before);
        done.push_str(&repeated.repeat(times));
        rest = after;
    }
    done.push_str(rest);
    Some(done)
}

#[cfg(test)]
mod tests {
    use super::expand_repetitions;

    #[test]
    fn repetitions_are_expanded_and_malformed_ones_are_rejected() {
        assert_eq!(expand_repetitions("a ${repeat x 3} b ${repeat yz 2}").as_deref(), Some("a xxx b yzyz"));
        for malformed in ["${repeat x", "${repeat x}", "${repeat x y}", "${repeat x 99999999}"] {
            assert_eq!(expand_repetitions(malformed), None, "{malformed}");
        }
    }
}
