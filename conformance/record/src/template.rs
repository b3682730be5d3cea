//! Words like `${uid}` in a script become what an earlier answer held.
//!
//! `${repeat a 300}` is three hundred letters. It is written out only when a request is sent: what is too large for a
//! server is not too large for a script or a record.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use thiserror::Error;

/// The longest text that a script may ask for: a little more than the largest request that a server takes.
const REPEAT_BYTES_MAX: usize = 4 * 1024 * 1024;
const REPEAT: &str = "repeat ";

/// A word in `${…}` that stands for nothing.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("${{{0}}} stands for nothing at this point")]
pub struct UnknownWord(String);

/// What words stand for.
pub type Words = BTreeMap<String, String>;

/// A text with every word replaced, except repetitions.
pub fn expand(text: &str, words: &Words) -> Result<String, UnknownWord> {
    replaced(text, |word| match words.get(word) {
        Some(meaning) => Ok(meaning.clone()),
        None if word.starts_with(REPEAT) => Ok(format!("${{{word}}}")),
        None => Err(UnknownWord(word.to_owned())),
    })
}

/// A text with its repetitions written out.
pub fn enlarge(text: &str) -> Result<String, UnknownWord> {
    replaced(text, |word| {
        let unknown = || UnknownWord(word.to_owned());
        let (text, times) = word.strip_prefix(REPEAT).and_then(|rest| rest.rsplit_once(' ')).ok_or_else(unknown)?;
        let times: usize = times.parse().map_err(|_| unknown())?;
        if text.len().saturating_mul(times) > REPEAT_BYTES_MAX { Err(unknown()) } else { Ok(text.repeat(times)) }
    })
}

/// A value with every word in its texts replaced, those of its keys too.
pub fn expand_value(value: &Value, words: &Words) -> Result<Value, UnknownWord> {
    Ok(match value {
        Value::String(text) => Value::String(expand(text, words)?),
        Value::Array(elements) => {
            Value::Array(elements.iter().map(|element| expand_value(element, words)).collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => {
            let expanded = fields.iter().map(|(key, value)| Ok((expand(key, words)?, expand_value(value, words)?)));
            Value::Object(expanded.collect::<Result<Map<_, _>, _>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}

fn replaced(text: &str, meaning: impl Fn(&str) -> Result<String, UnknownWord>) -> Result<String, UnknownWord> {
    let (mut rest, mut done) = (text, String::new());
    while let Some((before, after)) = rest.split_once("${") {
        let (word, after) = after.split_once('}').ok_or_else(|| UnknownWord(after.to_owned()))?;
        done.push_str(before);
        done.push_str(&meaning(word)?);
        rest = after;
    }
    done.push_str(rest);
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_are_replaced_wherever_they_stand() {
        let words = Words::from([("uid".to_owned(), "17".to_owned())]);
        let value = json!({"a-${uid}": ["x${uid}y${repeat ab 2}", 3]});
        assert_eq!(expand_value(&value, &words), Ok(json!({"a-17": ["x17y${repeat ab 2}", 3]})));
        assert_eq!(enlarge("x${repeat ab 2}y").as_deref(), Ok("xababy"));
    }

    #[test]
    fn a_word_without_a_meaning_is_an_error() {
        for text in ["${nothing}", "${open"] {
            assert!(expand(text, &Words::new()).is_err(), "{text}");
        }
        for text in ["${repeat a 99999999999}", "${repeat a many}", "${uid}"] {
            assert!(enlarge(text).is_err(), "{text}");
        }
    }
}
