//! Scripts of a shell: a list of commands with quotes, variables, `;`, `&&`, `||` and redirections.
//!
//! Left out on purpose: loops, conditions, functions and substitutions. Of a pipeline only the first command counts.

use std::iter::Peekable;
use std::str::Chars;

/// Largest number of bytes that the variables of a script expand to.
const EXPANSION_BYTES_MAX: usize = 1024 * 1024;

/// Condition on the exit code of the previous command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Always,
    Success,
    Failure,
    /// The command is part of a pipeline, and is not run.
    Never,
}

/// Destination of the output of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    Stdout,
    Stderr,
    /// A file, which nothing can read.
    Nowhere,
}

/// Part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    /// Name of a variable.
    Variable(String),
}

/// Command of a script. Its words are expanded when it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScriptCommand {
    pub(super) condition: Condition,
    pub(super) words: Vec<Vec<Part>>,
    pub(super) destination: Destination,
}

impl ScriptCommand {
    fn new(condition: Condition) -> Self {
        Self { condition, words: Vec::new(), destination: Destination::Stdout }
    }

    /// Returns a command with these arguments.
    pub(super) fn from_arguments(arguments: &[String]) -> Self {
        let words = arguments.iter().map(|argument| vec![Part::Text(argument.clone())]).collect();
        Self { words, ..Self::new(Condition::Always) }
    }

    /// Returns the words with the values of variables.
    pub(super) fn expand(&self, value: impl Fn(&str) -> String) -> Vec<String> {
        let mut expanded = 0;
        let mut expand = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Variable(_) if expanded > EXPANSION_BYTES_MAX => String::new(),
            Part::Variable(name) => {
                let value = value(name);
                expanded += value.len();
                value
            }
        };
        self.words.iter().map(|word| word.iter().map(&mut expand).collect()).collect()
    }
}

/// Parses a script. Every text is a script.
pub(super) fn parse(script: &str) -> Vec<ScriptCommand> {
    let mut parser = Parser {
        rest: script.chars().peekable(),
        commands: Vec::new(),
        command: ScriptCommand::new(Condition::Always),
    };
    while parser.parse_next() {}
    parser.finish(Condition::Always);
    parser.commands
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    commands: Vec<ScriptCommand>,
    command: ScriptCommand,
}

impl Parser<'_> {
    /// Parses a word or an operator. Returns false at the end.
    fn parse_next(&mut self) -> bool {
        let Some(next) = self.rest.peek().copied() else { return false };
        match next {
            '#' => while self.rest.next_if(|next| *next != '\n').is_some() {},
            ';' | '\n' | '&' | '|' => {
                self.rest.next();
                let is_double = next != '\n' && self.rest.next_if_eq(&next).is_some();
                self.finish(match (next, is_double) {
                    ('&', true) => Condition::Success,
                    ('|', true) => Condition::Failure,
                    ('|', false) => Condition::Never,
                    _ => Condition::Always,
                });
            }
            '>' | '<' => self.parse_redirection(next, '1'),
            _ if next.is_whitespace() => drop(self.rest.next()),
            _ => self.parse_word(),
        }
        true
    }

    /// Ends the current command; the next one has this condition.
    fn finish(&mut self, condition: Condition) {
        let ended = std::mem::replace(&mut self.command, ScriptCommand::new(condition));
        if !ended.words.is_empty() {
            self.commands.push(ended);
        }
    }

    /// Parses `>`, `>>` or `<` after the number of a stream, and its target.
    fn parse_redirection(&mut self, operator: char, stream: char) {
        while self.rest.next_if(|next| *next == operator).is_some() {}
        let duplicates = self.rest.next_if_eq(&'&').is_some();
        while self.rest.next_if(|next| *next == ' ').is_some() {}
        let before = self.command.words.len();
        if self.rest.peek().is_some_and(|next| !is_operator(*next)) {
            self.parse_word();
        }
        let target = self.command.words.drain(before..).next();
        if operator == '>' && stream == '1' {
            let is_stderr = duplicates && target == Some(vec![Part::Text("2".to_owned())])
                || target == Some(vec![Part::Text("/dev/stderr".to_owned())]);
            let is_stdout = target == Some(vec![Part::Text("/dev/stdout".to_owned())]);
            self.command.destination = match (is_stderr, is_stdout) {
                (true, _) => Destination::Stderr,
                (_, true) => Destination::Stdout,
                _ => Destination::Nowhere,
            };
        }
    }

    fn parse_word(&mut self) {
        let mut word = vec![Part::Text(String::new())];
        while let Some(next) = self.rest.next_if(|next| !is_operator(*next)) {
            match next {
                '\'' => {
                    while let Some(quoted) = self.rest.next_if(|next| *next != '\'') {
                        push(&mut word, quoted);
                    }
                    self.rest.next();
                }
                '"' => self.parse_double_quotes(&mut word),
                '\\' => self.rest.next().into_iter().for_each(|escaped| push(&mut word, escaped)),
                '$' => self.parse_variable(&mut word),
                _ => push(&mut word, next),
            }
        }
        // A digit before a redirection is the number of a stream.
        let digit = match word.as_slice() {
            [Part::Text(text)] if matches!(text.as_str(), "1" | "2") => text.chars().next(),
            _ => None,
        };
        match (digit, self.rest.peek()) {
            (Some(stream), Some('>')) => self.parse_redirection('>', stream),
            _ => self.command.words.push(word),
        }
    }

    fn parse_double_quotes(&mut self, word: &mut Vec<Part>) {
        while let Some(next) = self.rest.next_if(|next| *next != '"') {
            match next {
                '$' => self.parse_variable(word),
                '\\' if self.rest.peek().is_some_and(|next| matches!(next, '"' | '\\' | '$' | '`')) => {
                    self.rest.next().into_iter().for_each(|escaped| push(word, escaped));
                }
                _ => push(word, next),
            }
        }
        self.rest.next();
    }

    fn parse_variable(&mut self, word: &mut Vec<Part>) {
        let has_braces = self.rest.next_if_eq(&'{').is_some();
        let mut name = String::new();
        if let Some(special) = self.rest.next_if(|next| *next == '?') {
            name.push(special);
        } else {
            while let Some(next) = self.rest.next_if(|next| next.is_ascii_alphanumeric() || *next == '_') {
                name.push(next);
            }
        }
        if has_braces {
            while self.rest.next_if(|next| *next != '}').is_some() {}
            self.rest.next();
        }
        if name.is_empty() { push(word, '$') } else { word.push(Part::Variable(name)) }
    }
}

fn is_operator(next: char) -> bool {
    next.is_whitespace() || matches!(next, ';' | '&' | '|' | '>' | '<')
}

fn push(word: &mut Vec<Part>, character: char) {
    match word.last_mut() {
        Some(Part::Text(text)) => text.push(character),
        _ => word.push(Part::Text(character.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(script: &str) -> Vec<(Condition, Destination, Vec<String>)> {
        let value = |name: &str| format!("<{name}>");
        parse(script).iter().map(|one| (one.condition, one.destination, one.expand(value))).collect()
    }

    #[test]
    fn scripts_have_quotes_variables_conditions_and_redirections() {
        use Condition::*;
        use Destination::*;
        let strings = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        type Expected<'a> = &'a [(Condition, Destination, &'a [&'a str])];
        let cases: &[(&str, Expected<'_>)] = &[
            ("echo 'a  b' \"c $D\" e\\ f", &[(Always, Stdout, &["echo", "a  b", "c <D>", "e f"])]),
            ("echo ${A}x; exit 3", &[(Always, Stdout, &["echo", "<A>x"]), (Always, Stdout, &["exit", "3"])]),
            ("a && b || c", &[(Always, Stdout, &["a"]), (Success, Stdout, &["b"]), (Failure, Stdout, &["c"])]),
            ("echo oops >&2", &[(Always, Stderr, &["echo", "oops"])]),
            ("echo oops 1>&2; echo $?", &[(Always, Stderr, &["echo", "oops"]), (Always, Stdout, &["echo", "<?>"])]),
            ("echo x > /tmp/file", &[(Always, Nowhere, &["echo", "x"])]),
            ("ls /x 2>/dev/null | wc -l", &[(Always, Stdout, &["ls", "/x"]), (Never, Stdout, &["wc", "-l"])]),
            ("# nothing\n\n", &[]),
            ("echo ''", &[(Always, Stdout, &["echo", ""])]),
        ];
        for (script, expected) in cases {
            let expected: Vec<_> =
                expected.iter().map(|(condition, to, words)| (*condition, *to, strings(words))).collect();
            assert_eq!(words(script), expected, "{script}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_text_is_a_script(script in ".{0,200}") {
            let _commands = parse(&script);
        }
    }
}
