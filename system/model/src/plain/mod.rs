//! What nearly every manifest consists of, read without the library, which takes longer: blocks of plain fields and lists, words
//! and whole numbers, quotes without escapes, literal texts, brackets on one line. A document with anything else in it is left to
//! the library as a whole, and so is every error.

mod flow;
mod scalar;
#[cfg(test)]
mod tests;
mod written;

use memchr::memchr;

use flow::Flow;
use scalar::{key, scalar};
use written::Written;

/// The deepest document that is read here.
const LEVELS_MAX: usize = 32;

/// The mapping that a document holds, as JSON; nothing if somebody else has to look.
pub(crate) fn read(text: &str) -> Option<String> {
    // To the end in any case: so it is many bytes at once.
    let is_known = text.bytes().fold(true, |is_known, byte| is_known & matches!(byte, b'\n' | b' '..=b'~'));
    if !is_known || !text.ends_with('\n') {
        return None;
    }
    let mut reader = Reader { line: None, rest: text, written: Written::with_room_for(text) };
    reader.advance()?;
    reader.mapping(0, LEVELS_MAX)?;
    reader.line.is_none().then(|| reader.written.into_text())
}

/// Reads line by line. Whatever returns nothing means: somebody else has to look.
struct Reader<'a> {
    /// The next line that says something.
    line: Option<Line<'a>>,
    /// What comes after it.
    rest: &'a str,
    /// What was read before.
    written: Written<'a>,
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

/// What stands before the end of the line, and what after it.
fn next_line(text: &str) -> Option<(&str, &str)> {
    memchr(b'\n', text.as_bytes()).map(|end| (&text[..end], &text[end + 1..]))
}

impl<'a> Reader<'a> {
    /// Goes on to the next line that says something.
    fn advance(&mut self) -> Option<()> {
        self.line = None;
        while let Some((text, rest)) = next_line(self.rest) {
            self.rest = rest;
            let line = Line::of(text);
            if !line.content.is_empty() && !line.content.starts_with('#') {
                self.line = Some(line);
                return (!text.ends_with(' ')).then_some(());
            }
        }
        Some(())
    }

    fn mapping(&mut self, indent: usize, levels: usize) -> Option<()> {
        let mut mapping = self.written.begin_mapping();
        while let Some(line) = self.line.filter(|line| line.indent >= indent) {
            let (key, value) = key(line.content).filter(|_| line.indent == indent)?;
            self.written.key(&mut mapping, key);
            self.value(value, indent, levels)?;
        }
        let is_something = !mapping.is_empty();
        self.written.end_mapping(mapping).filter(|()| is_something)
    }

    fn list(&mut self, indent: usize, levels: usize) -> Option<()> {
        let mut list = self.written.begin_list();
        while let Some(item) = self.line.filter(|line| line.indent == indent).and_then(Line::item) {
            self.written.item(&mut list);
            if key(item.content).is_some() {
                self.line = Some(item);
                self.mapping(item.indent, levels.checked_sub(1)?)?;
            } else if item.content.is_empty() {
                return None;
            } else {
                self.value(item.content, indent, levels)?;
            }
        }
        self.written.end_list();
        // What is further in belongs to the last item, in a way that is not known here.
        self.line.is_none_or(|line| line.indent <= indent).then_some(())
    }

    /// What follows a key or a dash of a collection that has this indent.
    fn value(&mut self, text: &'a str, indent: usize, levels: usize) -> Option<()> {
        match text {
            "" => self.below(indent, levels.checked_sub(1)?),
            "|" | "|-" => self.literal(indent, text == "|"),
            _ => {
                if text.starts_with(['[', '{']) {
                    Flow::read(text, &mut self.written, levels)?;
                } else {
                    self.written.scalar(scalar(text)?);
                }
                self.advance()
            }
        }
    }

    /// What stands under a key.
    fn below(&mut self, indent: usize, levels: usize) -> Option<()> {
        self.advance()?;
        match self.line {
            Some(line) if line.item().is_some() && line.indent >= indent => self.list(line.indent, levels),
            Some(line) if line.indent > indent => self.mapping(line.indent, levels),
            _ => {
                self.written.null();
                Some(())
            }
        }
    }

    /// A text that keeps its lines.
    fn literal(&mut self, indent: usize, keeps_end: bool) -> Option<()> {
        let (mut blank, mut margin) = (0, None);
        self.written.begin_text();
        while let Some((line, rest)) = next_line(self.rest) {
            let Line { indent: spaces, content } = Line::of(line);
            if content.is_empty() {
                // Blanks that count are not known here.
                blank += 1;
                margin.filter(|margin| spaces <= *margin)?;
            } else {
                // The end of a line is written once it is known that it counts.
                let ends = std::mem::take(&mut blank) + usize::from(margin.is_some());
                let margin = *margin.get_or_insert(spaces);
                if spaces < margin {
                    break;
                }
                (0..ends).for_each(|_| self.written.line_end());
                self.written.part_of_text(&line[margin..]);
            }
            self.rest = rest;
        }
        margin.filter(|margin| *margin > indent)?;
        if keeps_end {
            self.written.line_end();
        }
        self.written.end_text();
        self.advance()
    }
}
