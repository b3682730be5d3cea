//! What keeps a rule from being used, with its place, in the words and the form of the real API server.

use std::fmt;

/// Something wrong at a place of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// From one.
    pub line: usize,
    /// From one, in characters.
    pub column: usize,
    /// What is wrong.
    pub words: String,
}

/// Everything that is wrong with a rule, in the order of its places; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issues {
    issues: Vec<Issue>,
    source: String,
}

impl Issues {
    pub(crate) fn new(mut issues: Vec<Issue>, source: &str) -> Self {
        issues.sort_by_key(|issue| (issue.line, issue.column));
        Self { issues, source: source.to_owned() }
    }

    /// The first by its place.
    pub fn first(&self) -> Option<&Issue> {
        self.issues.first()
    }
}

impl fmt::Display for Issues {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, issue) in self.issues.iter().enumerate() {
            if index > 0 {
                formatter.write_str("\n")?;
            }
            write!(formatter, "ERROR: <input>:{}:{}: {}", issue.line, issue.column, issue.words)?;
            if let Some(line) = self.source.split('\n').nth(issue.line.saturating_sub(1)) {
                write!(formatter, "\n | {}\n | {}", line.replace('\t', " "), marker(line, issue.column))?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Issues {}

/// Points at a column; beside wide characters with wide ones.
fn marker(line: &str, column: usize) -> String {
    let before = column.saturating_sub(1);
    let mut marker: String =
        line.chars().take(before).map(|character| if character.is_ascii() { '.' } else { '\u{ff0e}' }).collect();
    let is_wide = line.chars().nth(before).is_some_and(|character| !character.is_ascii());
    marker.push(if is_wide { '\u{ff3e}' } else { '^' });
    marker
}
