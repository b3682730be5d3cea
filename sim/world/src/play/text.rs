//! Words in the texts of a story: `${STACK}` is the id of a stack, `${repeat x 300}` three hundred letters.

use super::Play;
use crate::stage::Trouble;

/// The longest text that a story may ask for: a little more than the largest request that anybody takes.
const REPEAT_BYTES_MAX: usize = 4 * 1024 * 1024;
const REPEAT: &str = "${repeat ";

impl Play<'_> {
    /// A text with its words written out.
    pub(super) fn written_out(&self, text: &str) -> Result<String, Trouble> {
        let ledger = self.ledger.borrow();
        let with_ids = ledger
            .stacks
            .iter()
            .fold(text.to_owned(), |text, (name, stack)| text.replace(&format!("${{{name}}}"), &stack.id.to_string()));
        enlarged(&with_ids).ok_or_else(|| Trouble::Broken(format!("{REPEAT}…}} takes a text and a number")))
    }
}

/// A text with its repetitions written out; `None` if one makes no sense or is too long.
fn enlarged(text: &str) -> Option<String> {
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
    use super::enlarged;

    #[test]
    fn repetitions_are_written_out_and_what_makes_no_sense_is_refused() {
        assert_eq!(enlarged("a ${repeat x 3} b ${repeat yz 2}").as_deref(), Some("a xxx b yzyz"));
        for wrong in ["${repeat x", "${repeat x}", "${repeat x y}", "${repeat x 99999999}"] {
            assert_eq!(enlarged(wrong), None, "{wrong}");
        }
    }
}
