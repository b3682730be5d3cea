//! Lists and fields in brackets, on one line.

use super::scalar::{key, scalar};
use super::written::Written;

pub(super) struct Flow<'a, 'b> {
    /// What is not read yet.
    rest: &'a str,
    written: &'b mut Written<'a>,
}

impl<'a, 'b> Flow<'a, 'b> {
    /// A text that is a pair of brackets with something in between.
    pub(super) fn read(text: &'a str, written: &'b mut Written<'a>, levels: usize) -> Option<()> {
        let mut flow = Self { rest: text, written };
        flow.value(levels)?;
        flow.rest.is_empty().then_some(())
    }

    fn value(&mut self, levels: usize) -> Option<()> {
        let levels = levels.checked_sub(1)?;
        let text = match self.rest.as_bytes().first()? {
            b'[' => return self.list(levels),
            b'{' => return self.mapping(levels),
            quote @ (b'"' | b'\'') => {
                let end = self.rest[1..].find(char::from(*quote))? + 2;
                self.take(end)
            }
            _ => {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" _./$()=+-".contains(&byte);
                let end = self.rest.bytes().position(|byte| !is_plain(byte))?;
                self.take(end).trim_end_matches(' ')
            }
        };
        self.written.scalar(scalar(text)?);
        Some(())
    }

    fn list(&mut self, levels: usize) -> Option<()> {
        let mut list = self.written.begin_list();
        while self.goes_on(list.is_empty(), '[', ']')? {
            self.written.item(&mut list);
            self.value(levels)?;
        }
        self.written.end_list();
        Some(())
    }

    fn mapping(&mut self, levels: usize) -> Option<()> {
        let mut mapping = self.written.begin_mapping();
        while self.goes_on(mapping.is_empty(), '{', '}')? {
            let (key, value) = key(self.rest).filter(|(_, value)| !value.is_empty())?;
            self.rest = value;
            self.written.key(&mut mapping, key);
            self.value(levels)?;
        }
        self.written.end_mapping(mapping)
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
