//! What nearly every manifest consists of, read without the library, which takes longer: blocks of plain fields and lists, words
//! and whole numbers, quotes without escapes, literal texts, brackets on one line. A document with anything else in it is left to
//! the library as a whole, and so is every error.

mod flow;
mod scalar;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use flow::Flow;
use scalar::{key, scalar};

/// The deepest document that is read here.
const LEVELS_MAX: usize = 32;

/// The mapping that a document holds; nothing if somebody else has to look.
pub(crate) fn read(text: &str) -> Option<Value> {
    if !text.ends_with('\n') || !text.bytes().all(|byte| matches!(byte, b'\n' | b' '..=b'~')) {
        return None;
    }
    let mut reader = Reader { line: None, rest: text };
    reader.advance()?;
    let value = reader.mapping(0, LEVELS_MAX)?;
    reader.line.is_none().then_some(value)
}

/// Reads line by line. Whatever returns nothing means: somebody else has to look.
struct Reader<'a> {
    /// The next line that says something.
    line: Option<Line<'a>>,
    /// What comes after it.
    rest: &'a str,
}

#[derive(Clone, Copy)]
struct Line<'a> {
    indent: usize,
    content: &'a str,
}

impl<'a> Line<'a> {
    fn of(text: &'a str) -> Self {
        let content = text.trim_start_matches(' ');
        Self { indent: text.len() - content.len(), content }
    }

    /// What stands behind the dash, if it is an item of a list.
    fn item(self) -> Option<Self> {
        let Self { indent, content } = Self::of(self.content.strip_prefix('-')?);
        (indent > 0).then_some(Self { indent: self.indent + 1 + indent, content })
    }
}

impl<'a> Reader<'a> {
    /// Goes on to the next line that says something.
    fn advance(&mut self) -> Option<()> {
        self.line = None;
        while let Some((text, rest)) = self.rest.split_once('\n') {
            self.rest = rest;
            let line = Line::of(text);
            if !line.content.is_empty() && !line.content.starts_with('#') {
                self.line = Some(line);
                return (!text.ends_with(' ')).then_some(());
            }
        }
        Some(())
    }

    fn mapping(&mut self, indent: usize, levels: usize) -> Option<Value> {
        let mut fields = Map::new();
        while let Some(line) = self.line.filter(|line| line.indent >= indent) {
            let (key, value) = key(line.content).filter(|_| line.indent == indent)?;
            let value = self.value(value, indent, levels)?;
            if fields.insert(key.to_owned(), value).is_some() {
                return None;
            }
        }
        (!fields.is_empty()).then_some(Value::Object(fields))
    }

    fn list(&mut self, indent: usize, levels: usize) -> Option<Value> {
        let mut items = Vec::new();
        while let Some(item) = self.line.filter(|line| line.indent == indent).and_then(Line::item) {
            let value = if key(item.content).is_some() {
                self.line = Some(item);
                self.mapping(item.indent, levels.checked_sub(1)?)?
            } else if item.content.is_empty() {
                return None;
            } else {
                self.value(item.content, indent, levels)?
            };
            items.push(value);
        }
        // What is further in belongs to the last item, in a way that is not known here.
        self.line.is_none_or(|line| line.indent <= indent).then_some(Value::Array(items))
    }

    /// What follows a key or a dash of a collection that has this indent.
    fn value(&mut self, text: &str, indent: usize, levels: usize) -> Option<Value> {
        match text {
            "" => self.below(indent, levels.checked_sub(1)?),
            "|" | "|-" => self.literal(indent, text == "|"),
            _ => {
                let value = if text.starts_with(['[', '{']) { Flow::read(text, levels)? } else { scalar(text)? };
                self.advance()?;
                Some(value)
            }
        }
    }

    /// What stands under a key.
    fn below(&mut self, indent: usize, levels: usize) -> Option<Value> {
        self.advance()?;
        match self.line {
            Some(line) if line.item().is_some() && line.indent >= indent => self.list(line.indent, levels),
            Some(line) if line.indent > indent => self.mapping(line.indent, levels),
            _ => Some(Value::Null),
        }
    }

    /// A text that keeps its lines.
    fn literal(&mut self, indent: usize, keeps_end: bool) -> Option<Value> {
        let (mut text, mut blank, mut margin) = (String::new(), 0, None);
        while let Some((line, rest)) = self.rest.split_once('\n') {
            let Line { indent: spaces, content } = Line::of(line);
            if content.is_empty() {
                // Blanks that count are not known here.
                blank += 1;
                margin.filter(|margin| spaces <= *margin)?;
            } else {
                let margin = *margin.get_or_insert(spaces);
                if spaces < margin {
                    break;
                }
                text.extend(std::iter::repeat_n('\n', std::mem::take(&mut blank)));
                text.push_str(&line[margin..]);
                text.push('\n');
            }
            self.rest = rest;
        }
        margin.filter(|margin| *margin > indent)?;
        if !keeps_end {
            text.pop();
        }
        self.advance()?;
        Some(Value::String(text))
    }
}
