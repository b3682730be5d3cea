//! Flags as Go's programs take them: `--name=value`, `--name value`, with one dash or two; the last one counts.

use std::collections::BTreeMap;

/// The flags of a program that stands in for another.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    given: BTreeMap<String, String>,
}

impl Flags {
    /// Reads arguments. A flag without a value says yes.
    pub(super) fn read(arguments: impl IntoIterator<Item = String>) -> Self {
        let mut given = BTreeMap::new();
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
            given.insert(name.to_owned(), value);
        }
        Self { given }
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.given.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The flags that are not among these.
    pub(super) fn others(&self, known: &[&str]) -> Vec<&str> {
        self.given.keys().map(String::as_str).filter(|name| !known.contains(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_flag_is_read() {
        let arguments = ["--a=1", "-b", "2", "--c", "--d=x=y", "stray", "--a=3"].map(str::to_owned);
        let flags = Flags::read(arguments);
        assert_eq!(flags.get("a"), Some("3"));
        assert_eq!(flags.get("b"), Some("2"));
        assert_eq!(flags.get("c"), Some("true"));
        assert_eq!(flags.get("d"), Some("x=y"));
        assert_eq!(flags.others(&["a", "b"]), ["c", "d"]);
    }
}
