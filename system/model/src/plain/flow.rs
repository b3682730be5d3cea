//! Lists and fields in brackets, on one line.

use serde_json::{Map, Value};

use super::scalar::{key, scalar};

/// What is not read yet.
pub(super) struct Flow<'a> {
    rest: &'a str,
}

impl<'a> Flow<'a> {
    /// A text that is a pair of brackets with something in between.
    pub(super) fn read(text: &'a str, levels: usize) -> Option<Value> {
        let mut flow = Self { rest: text };
        let value = flow.value(levels)?;
        flow.rest.is_empty().then_some(value)
    }

    fn value(&mut self, levels: usize) -> Option<Value> {
        let levels = levels.checked_sub(1)?;
        match self.rest.as_bytes().first()? {
            b'[' => self.list(levels),
            b'{' => self.mapping(levels),
            quote @ (b'"' | b'\'') => {
                let end = self.rest[1..].find(char::from(*quote))? + 2;
                scalar(self.take(end))
            }
            _ => {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" _./$()=+-".contains(&byte);
                let end = self.rest.bytes().position(|byte| !is_plain(byte))?;
                scalar(self.take(end).trim_end_matches(' '))
            }
        }
    }

    fn list(&mut self, levels: usize) -> Option<Value> {
        let mut items = Vec::new();
        while self.goes_on(items.is_empty(), '[', ']')? {
            items.push(self.value(levels)?);
        }
        Some(Value::Array(items))
    }

    fn mapping(&mut self, levels: usize) -> Option<Value> {
        let mut fields = Map::new();
        while self.goes_on(fields.is_empty(), '{', '}')? {
            let (key, value) = key(self.rest).filter(|(_, value)| !value.is_empty())?;
            self.rest = value;
            let value = self.value(levels)?;
            if fields.insert(key.to_owned(), value).is_some() {
                return None;
            }
        }
        Some(Value::Object(fields))
    }

    /// Whether something comes before the bracket that closes.
    fn goes_on(&mut self, is_first: bool, opening: char, closing: char) -> Option<bool> {
        self.skip_blanks();
        if !is_first && let Some(rest) = self.rest.strip_prefix(closing) {
            self.rest = rest;
            return Some(false);
        }
        self.rest = self.rest.strip_prefix(if is_first { opening } else { ',' })?;
        self.skip_blanks();
        match self.rest.strip_prefix(closing) {
            Some(rest) if is_first => {
                self.rest = rest;
                Some(false)
            }
            // After a comma it is left to somebody else to say what that means.
            Some(_) => None,
            None => Some(true),
        }
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(' ');
    }
}
