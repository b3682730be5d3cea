//! Replaces variables such as `${uid}` in a script by values of earlier responses.
//!
//! `${repeat a 300}` is a text of 300 letters. It is expanded only when a request is sent, so that scripts and recordings stay
//! small.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use thiserror::Error;

/// Maximum length of a repeated text: a little more than the largest request that a server accepts.
const REPEAT_BYTES_MAX: usize = 4 * 1024 * 1024;
const REPEAT: &str = "repeat ";

/// A variable without a value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("${{{0}}} has no value here")]
pub struct UnknownVariable(String);

/// Values of variables.
pub type Variables = BTreeMap<String, String>;

/// Replaces all variables in a text, except repetitions.
pub fn expand(text: &str, variables: &Variables) -> Result<String, UnknownVariable> {
    replace(text, |name| match variables.get(name) {
        Some(value) => Ok(value.clone()),
        None if name.starts_with(REPEAT) => Ok(format!("${{{name}}}")),
        None => Err(UnknownVariable(name.to_owned())),
    })
}

/// Expands the repetitions in a text.
pub fn expand_repetitions(text: &str) -> Result<String, UnknownVariable> {
    replace(text, |name| {
        let unknown = || UnknownVariable(name.to_owned());
        let (text, times) = name.strip_prefix(REPEAT).and_then(|rest| rest.rsplit_once(' ')).ok_or_else(unknown)?;
        let times: usize = times.parse().map_err(|_| unknown())?;
        if text.len().saturating_mul(times) > REPEAT_BYTES_MAX { Err(unknown()) } else { Ok(text.repeat(times)) }
    })
}

/// Replaces all variables in the texts and keys of a value.
pub fn expand_value(value: &Value, variables: &Variables) -> Result<Value, UnknownVariable> {
    Ok(match value {
        Value::String(text) => Value::String(expand(text, variables)?),
        Value::Array(elements) => {
            Value::Array(elements.iter().map(|element| expand_value(element, variables)).collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => {
            let expanded =
                fields.iter().map(|(key, value)| Ok((expand(key, variables)?, expand_value(value, variables)?)));
            Value::Object(expanded.collect::<Result<Map<_, _>, _>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}

fn replace(text: &str, value: impl Fn(&str) -> Result<String, UnknownVariable>) -> Result<String, UnknownVariable> {
    let (mut rest, mut done) = (text, String::new());
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}').ok_or_else(|| UnknownVariable(after.to_owned()))?;
        done.push_str(before);
        done.push_str(&value(name)?);
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
    fn variables_are_replaced_everywhere() {
        let variables = Variables::from([("uid".to_owned(), "17".to_owned())]);
        let value = json!({"a-${uid}": ["x${uid}y${repeat ab 2}", 3]});
        assert_eq!(expand_value(&value, &variables), Ok(json!({"a-17": ["x17y${repeat ab 2}", 3]})));
        assert_eq!(expand_repetitions("x${repeat ab 2}y").as_deref(), Ok("xababy"));
    }

    #[test]
    fn a_variable_without_a_value_is_an_error() {
        for text in ["${nothing}", "${open"] {
            assert!(expand(text, &Variables::new()).is_err(), "{text}");
        }
        for text in ["${repeat a 99999999999}", "${repeat a many}", "${uid}"] {
            assert!(expand_repetitions(text).is_err(), "{text}");
        }
    }
}
