//! Flags in the syntax of Go programs: `--name=value` or `--name value`, with one dash or two; the last value wins.

use std::collections::BTreeMap;

/// Parsed flags.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    values: BTreeMap<String, String>,
}

impl Flags {
    /// Parses arguments. A flag without a value is `true`.
    pub(super) fn parse(arguments: impl IntoIterator<Item = String>) -> Self {
        let mut values = BTreeMap::new();
        let mut arguments = arguments.into_iter().peekable();
        while let Some(argument) = arguments.next() {
            let Some(flag) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else { continue };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => {
                    let value = arguments.next_if(|next| !next.starts_with('-'));
                    (flag, value.unwrap_or_else(|| "true".to_owned()))
                }
            };
            values.insert(name.to_owned(), value);
        }
        Self { values }
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns the flags that are not in this list.
    pub(super) fn unknown(&self, known: &[&str]) -> Vec<&str> {
        self.values.keys().map(String::as_str).filter(|name| !known.contains(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_flag_is_parsed() {
        let arguments = ["--a=1", "-b", "2", "--c", "--d=x=y", "stray", "--a=3"].map(str::to_owned);
        let flags = Flags::parse(arguments);
        assert_eq!(flags.get("a"), Some("3"));
        assert_eq!(flags.get("b"), Some("2"));
        assert_eq!(flags.get("c"), Some("true"));
        assert_eq!(flags.get("d"), Some("x=y"));
        assert_eq!(flags.unknown(&["a", "b"]), ["c", "d"]);
    }
}
