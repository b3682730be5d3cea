//! The JSON that is written while a document is read. What is read has printable ASCII characters only, and keys that need no
//! quoting: few of them mean something to JSON.

use memchr::memchr2;

use super::scalar::Scalar;

/// What was written so far.
pub(super) struct Written<'a> {
    text: String,
    /// The keys of all mappings that are open, the outermost first: none may stand twice in its mapping.
    keys: Vec<&'a str>,
}

/// A mapping that is open.
pub(super) struct Mapping {
    /// Where its keys begin.
    first_key: usize,
    is_empty: bool,
}

impl Mapping {
    pub(super) fn is_empty(&self) -> bool {
        self.is_empty
    }
}

/// A list that is open.
pub(super) struct List {
    is_empty: bool,
}

impl List {
    pub(super) fn is_empty(&self) -> bool {
        self.is_empty
    }
}

impl<'a> Written<'a> {
    /// Indents are left out, and quotes come in: it is seldom longer than the document.
    pub(super) fn with_room_for(document: &str) -> Self {
        Self { text: String::with_capacity(document.len()), keys: Vec::new() }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    pub(super) fn begin_mapping(&mut self) -> Mapping {
        self.text.push('{');
        Mapping { first_key: self.keys.len(), is_empty: true }
    }

    pub(super) fn key(&mut self, mapping: &mut Mapping, key: &'a str) {
        self.separate(&mut mapping.is_empty);
        self.keys.push(key);
        self.text.push('"');
        self.text.push_str(key);
        self.text.push_str("\":");
    }

    /// Nothing if a key stands in it twice.
    pub(super) fn end_mapping(&mut self, mapping: Mapping) -> Option<()> {
        self.text.push('}');
        let keys = &mut self.keys[mapping.first_key..];
        keys.sort_unstable();
        let is_twice = keys.windows(2).any(|pair| pair[0] == pair[1]);
        self.keys.truncate(mapping.first_key);
        (!is_twice).then_some(())
    }

    pub(super) fn begin_list(&mut self) -> List {
        self.text.push('[');
        List { is_empty: true }
    }

    pub(super) fn item(&mut self, list: &mut List) {
        self.separate(&mut list.is_empty);
    }

    pub(super) fn end_list(&mut self) {
        self.text.push(']');
    }

    pub(super) fn null(&mut self) {
        self.text.push_str("null");
    }

    pub(super) fn scalar(&mut self, scalar: Scalar<'_>) {
        match scalar {
            Scalar::Word(word) => self.text.push_str(word),
            Scalar::Text(text) => {
                self.begin_text();
                self.part_of_text(text);
                self.end_text();
            }
        }
    }

    pub(super) fn begin_text(&mut self) {
        self.text.push('"');
    }

    pub(super) fn part_of_text(&mut self, part: &str) {
        let mut rest = part;
        while let Some(place) = memchr2(b'"', b'\\', rest.as_bytes()) {
            let (before, special) = rest.split_at(place);
            self.text.push_str(before);
            self.text.push('\\');
            self.text.push_str(&special[..1]);
            rest = &special[1..];
        }
        self.text.push_str(rest);
    }

    pub(super) fn line_end(&mut self) {
        self.text.push_str("\\n");
    }

    pub(super) fn end_text(&mut self) {
        self.text.push('"');
    }

    fn separate(&mut self, is_first: &mut bool) {
        if !std::mem::take(is_first) {
            self.text.push(',');
        }
    }
}
