//! Regular expressions in Go's syntax: ASCII-only classes, no nested brackets, and Go's error messages.

use regex::{Regex, RegexBuilder};
use thiserror::Error;

/// Maximum memory of a compiled pattern, and of one that an untrusted rule computes.
const BYTES_MAX: usize = 10 << 20;
const RULE_BYTES_MAX: usize = 1 << 20;
/// Maximum nesting of groups.
const NESTING_MAX: u32 = 100;
/// Maximum count of a repetition.
const REPEATS_MAX: u32 = 1_000;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

/// Error of an invalid pattern, with Go's message.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("error parsing regexp: {reason}: `{fragment}`")]
pub struct PatternError {
    reason: &'static str,
    fragment: String,
}

impl Pattern {
    /// Compiles a pattern.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        Self::within(text, BYTES_MAX)
    }

    /// Compiles a pattern of a rule, which may take less memory.
    pub(crate) fn for_rule(text: &str) -> Result<Self, PatternError> {
        Self::within(text, RULE_BYTES_MAX)
    }

    fn within(text: &str, bytes_max: usize) -> Result<Self, PatternError> {
        let translated = Translation { text, at: 0, groups: Vec::new(), out: String::new() }.run()?;
        let regex = RegexBuilder::new(&translated).size_limit(bytes_max).nest_limit(NESTING_MAX).build();
        regex.map(Self).map_err(|_| to_error("expression too large", text))
    }

    /// Returns true if the text contains a match.
    pub fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Returns the first match.
    pub(crate) fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.0.find(text).map(|found| found.as_str())
    }

    /// Returns the matches, up to a number of them.
    pub(crate) fn find_all<'t>(&self, text: &'t str, most: usize) -> Vec<&'t str> {
        self.0.find_iter(text).take(most).map(|found| found.as_str()).collect()
    }
}

fn to_error(reason: &'static str, fragment: &str) -> PatternError {
    PatternError { reason, fragment: fragment.to_owned() }
}

/// Translates Go's syntax to that of the regex crate.
struct Translation<'t> {
    text: &'t str,
    at: usize,
    /// Start offsets of the enclosing groups.
    groups: Vec<usize>,
    out: String,
}

impl<'t> Translation<'t> {
    fn run(mut self) -> Result<String, PatternError> {
        // True if an operator could repeat the last item, and the offset of an operator that was just read.
        let mut operand = false;
        let mut repeated: Option<usize> = None;
        while let Some(next) = self.rest().chars().next() {
            let start = self.at;
            let operator = match next {
                '*' | '+' | '?' => Some(1),
                '{' => self.counted()?,
                _ => None,
            };
            if let Some(length) = operator {
                self.repeat(operand, repeated, length)?;
                repeated = Some(repeated.unwrap_or(start));
                continue;
            }
            repeated = None;
            operand = match next {
                '(' => self.open()?,
                ')' => self.close()?,
                '[' => self.class()?,
                '\\' => self.escape(false)?,
                '{' => self.literal("\\{"),
                '|' => {
                    self.take(1);
                    false
                }
                other => {
                    self.take(other.len_utf8());
                    true
                }
            };
        }
        match self.groups.first() {
            Some(_) => Err(to_error("missing closing )", self.text)),
            None => Ok(self.out),
        }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Copies so many bytes unchanged.
    fn take(&mut self, length: usize) {
        self.out.push_str(self.rest().get(..length).unwrap_or_default());
        self.at += length;
    }

    /// Replaces the next byte.
    fn literal(&mut self, written: &str) -> bool {
        self.out.push_str(written);
        self.at += 1;
        true
    }

    /// Returns the length of a repetition such as `{2,5}`; `None` for a literal brace.
    fn counted(&self) -> Result<Option<usize>, PatternError> {
        let Some(end) = self.rest().find('}') else { return Ok(None) };
        let whole = &self.rest()[..=end];
        let inside = &whole[1..whole.len() - 1];
        let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(least) || !(most.is_empty() || is_number(most)) {
            return Ok(None);
        }
        let number = |text: &str| text.parse::<u32>().unwrap_or(u32::MAX);
        let is_wrong = number(least) > REPEATS_MAX
            || !most.is_empty() && (number(most) > REPEATS_MAX || number(most) < number(least));
        if is_wrong { Err(to_error("invalid repeat count", whole)) } else { Ok(Some(whole.len())) }
    }

    fn repeat(&mut self, operand: bool, repeated: Option<usize>, length: usize) -> Result<(), PatternError> {
        let start = self.at;
        if !operand {
            return Err(to_error("missing argument to repetition operator", &self.rest()[..length]));
        }
        let lazy = usize::from(self.rest()[length..].starts_with('?'));
        if let Some(first) = repeated {
            return Err(to_error("invalid nested repetition operator", &self.text[first..start + length + lazy]));
        }
        self.take(length + lazy);
        Ok(())
    }

    fn open(&mut self) -> Result<bool, PatternError> {
        let rest = self.rest();
        self.groups.push(self.at);
        if !rest.starts_with("(?") {
            self.take(1);
            return Ok(false);
        }
        if rest.starts_with("(?P<") || rest.starts_with("(?<") && !rest.starts_with("(?<=") && !rest.starts_with("(?<!")
        {
            return self.named();
        }
        let end = rest.find([':', ')']).unwrap_or(rest.len());
        let flags = rest.get(2..end).unwrap_or_default();
        if end == rest.len() || !flags.chars().all(|flag| "imsU-".contains(flag)) {
            let wrong = rest[2..].find(|flag| !"imsU-".contains(flag)).map_or(rest.len(), |at| at + 3);
            return Err(to_error("invalid or unsupported Perl syntax", rest.get(..wrong).unwrap_or(rest)));
        }
        if rest[end..].starts_with(')') {
            self.groups.pop();
        }
        self.take(end + 1);
        Ok(false)
    }

    fn named(&mut self) -> Result<bool, PatternError> {
        let rest = self.rest();
        let Some(end) = rest.find('>') else { return Err(to_error("invalid named capture", rest)) };
        let name = rest[..end].rsplit('<').next().unwrap_or_default();
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if name.is_empty() || !name.chars().all(is_word) {
            return Err(to_error("invalid named capture", &rest[..=end]));
        }
        // The name of the group is not used, and the library allows fewer names.
        self.out.push('(');
        self.at += end + 1;
        Ok(false)
    }

    fn close(&mut self) -> Result<bool, PatternError> {
        if self.groups.pop().is_none() {
            return Err(to_error("unexpected )", self.text));
        }
        self.take(1);
        Ok(true)
    }

    /// Translates a class such as `[a-z]`, in which an opening bracket is a literal.
    fn class(&mut self) -> Result<bool, PatternError> {
        let start = self.at;
        self.take(1);
        if self.rest().starts_with('^') {
            self.take(1);
        }
        let mut is_first = true;
        loop {
            let Some(next) = self.rest().chars().next() else {
                return Err(to_error("missing closing ]", &self.text[start..]));
            };
            match next {
                ']' if !is_first => {
                    self.take(1);
                    return Ok(true);
                }
                '[' if self.rest().starts_with("[:") => self.named_class()?,
                '\\' => {
                    self.escape(true)?;
                }
                '-' | '[' | ']' | '&' | '~' => {
                    self.out.push('\\');
                    self.take(1);
                }
                other => self.take(other.len_utf8()),
            }
            self.range()?;
            is_first = false;
        }
    }

    /// Translates the rest of a range in a class: `-` and its end.
    fn range(&mut self) -> Result<(), PatternError> {
        let rest = self.rest();
        let mut following = rest.chars();
        if following.next() != Some('-') || matches!(following.next(), None | Some(']')) {
            return Ok(());
        }
        let before = self.text[..self.at].chars().next_back();
        self.take(1);
        let start = self.at;
        let next = self.rest().chars().next().unwrap_or(']');
        match next {
            '\\' => {
                self.escape(true)?;
            }
            '[' | '&' | '~' | '-' => {
                self.out.push('\\');
                self.take(1);
            }
            other => {
                self.take(other.len_utf8());
                // Both ends are literals: the first must not be greater than the last.
                if before.is_some_and(|before| before > other && before != ']') {
                    let from = start - 1 - before.map_or(0, char::len_utf8);
                    return Err(to_error(
                        "invalid character class range",
                        self.text.get(from..self.at).unwrap_or_default(),
                    ));
                }
            }
        }
        Ok(())
    }

    fn named_class(&mut self) -> Result<(), PatternError> {
        const NAMES: [&str; 14] = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
            "word", "xdigit",
        ];
        let Some(length) = self.rest()["[:".len()..].find(":]") else {
            self.literal("\\[");
            return Ok(());
        };
        let whole = &self.rest()[..length + "[::]".len()];
        let name = &whole["[:".len()..whole.len() - ":]".len()];
        if !NAMES.contains(&name.trim_start_matches('^')) {
            return Err(to_error("invalid character class range", whole));
        }
        self.take(whole.len());
        Ok(())
    }

    /// Translates an escape sequence; classes are ASCII-only.
    fn escape(&mut self, in_class: bool) -> Result<bool, PatternError> {
        let rest = self.rest();
        let Some(next) = rest[1..].chars().next() else {
            return Err(to_error("trailing backslash at end of expression", ""));
        };
        let length = 1 + next.len_utf8();
        let written = match next {
            'd' => "[0-9]",
            'D' => "[^0-9]",
            'w' => "[0-9A-Za-z_]",
            'W' => "[^0-9A-Za-z_]",
            's' => "[\\t\\n\\x0c\\r ]",
            'S' => "[^\\t\\n\\x0c\\r ]",
            'b' if !in_class => "(?-u:\\b)",
            'B' if !in_class => "(?-u:\\B)",
            'A' if !in_class => "\\A",
            'z' if !in_class => "\\z",
            'Q' => return Ok(self.quoted(in_class)),
            'p' | 'P' | 'x' => return self.long_escape(next),
            'a' => "\\x07",
            'f' => "\\x0c",
            'n' => "\\n",
            'r' => "\\r",
            't' => "\\t",
            'v' => "\\x0b",
            '0'..='7' => return self.octal(),
            other if other.is_ascii() && !other.is_ascii_alphanumeric() => {
                self.take(length);
                return Ok(true);
            }
            _ => return Err(to_error("invalid escape sequence", &rest[..length])),
        };
        self.out.push_str(written);
        self.at += length;
        Ok(!matches!(next, 'b' | 'B' | 'A' | 'z'))
    }

    /// `\pL`, `\p{Greek}`, `\x41`, `\x{10FFFF}`: the same in both syntaxes.
    fn long_escape(&mut self, kind: char) -> Result<bool, PatternError> {
        let rest = self.rest();
        let after = &rest[2..];
        let length = match after.strip_prefix('{') {
            Some(inside) => inside.find('}').map(|end| end + 4),
            None if kind == 'x' => {
                let is_hex = after.get(..2).is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
                is_hex.then_some(4)
            }
            None => after.chars().next().map(|letter| 2 + letter.len_utf8()),
        };
        let reason = if kind == 'x' { "invalid escape sequence" } else { "invalid character class range" };
        let Some(whole) = length.and_then(|length| rest.get(..length)) else { return Err(to_error(reason, rest)) };
        if regex::Regex::new(whole).is_err() {
            return Err(to_error(reason, whole));
        }
        self.take(whole.len());
        Ok(true)
    }

    /// `\012`: one to three octal digits; a single digit is octal only if it is zero.
    fn octal(&mut self) -> Result<bool, PatternError> {
        let rest = self.rest();
        let digits: String = rest[1..].chars().take(3).take_while(|digit| ('0'..='7').contains(digit)).collect();
        if !digits.starts_with('0') && digits.len() < 2 {
            return Err(to_error("invalid escape sequence", &rest[..2]));
        }
        let code = u32::from_str_radix(&digits, 8).unwrap_or_default();
        self.out.push_str(&format!("\\x{{{code:x}}}"));
        self.at += 1 + digits.len();
        Ok(true)
    }

    /// `\Q...\E`: literal text.
    fn quoted(&mut self, in_class: bool) -> bool {
        let inside = &self.rest()[2..];
        let end = inside.find("\\E");
        let text = &inside[..end.unwrap_or(inside.len())];
        let escaped = regex::escape(text);
        if in_class || text.is_empty() {
            self.out.push_str(&escaped)
        } else {
            self.out.push_str(&format!("(?:{escaped})"))
        }
        self.at += 2 + text.len() + end.map_or(0, |_| 2);
        !text.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn patterns_match_as_they_do_in_go() {
        for (pattern, text, expected) in [
            ("^[a-z]+$", "abc", true),
            ("^[a-z]+$", "Abc", false),
            (r"^\d+$", "١٢", false),
            (r"^\w+$", "größe", false),
            (r"^[\w-]+$", "a-b_c", true),
            (r"^[[]x]$", "[x]", true),
            (r"^[^\s]+$", "a b", false),
            (r"^(a|b){2,3}$", "aba", true),
            (r"^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$", "a-b", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"(?i)^ABC$", "abc", true),
            (r"^(?P<n>a)$", "a", true),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^\/x$", "/x", true),
            (r"^[&&~~]$", "&", true),
            (r"^[^-]$", "-", false),
            (r"^[a-]$", "-", true),
            (r"^[a-z0-9-\p{L}]+$", "a-ß", true),
            (r"^\x41\pL$", "Aä", true),
            ("^$", "", true),
            ("", "anything", true),
        ] {
            assert_eq!(Pattern::new(pattern).map(|pattern| pattern.is_in(text)), Ok(expected), "{pattern} {text}");
        }
    }

    #[test]
    fn invalid_patterns_have_the_messages_of_go() {
        for (pattern, message) in [
            ("(a", "missing closing ): `(a`"),
            ("a)", "unexpected ): `a)`"),
            ("[a", "missing closing ]: `[a`"),
            ("*a", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("[z-a]", "invalid character class range: `z-a`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            (r"a\y", r"invalid escape sequence: `\y`"),
            (r"a\1", r"invalid escape sequence: `\1`"),
            ("\\", "trailing backslash at end of expression: ``"),
        ] {
            let error = Pattern::new(pattern).expect_err(pattern);
            assert_eq!(error.to_string(), format!("error parsing regexp: {message}"), "{pattern}");
        }
    }
}
