//! Compile errors of a rule, in the format of the real API server.

use std::fmt;

/// A compile error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Description of the error.
    pub message: String,
}

/// All compile errors of a rule, ordered by position; at least one.
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

    /// Returns the first error by position.
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
            write!(formatter, "ERROR: <input>:{}:{}: {}", issue.line, issue.column, issue.message)?;
            if let Some(line) = self.source.split('\n').nth(issue.line.saturating_sub(1)) {
                write!(formatter, "\n | {}\n | {}", line.replace('\t', " "), marker(line, issue.column))?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Issues {}

/// Returns the line that points at a column, with wide characters below wide ones.
fn marker(line: &str, column: usize) -> String {
    let before = column.saturating_sub(1);
    let mut marker: String =
        line.chars().take(before).map(|character| if character.is_ascii() { '.' } else { '\u{ff0e}' }).collect();
    let is_wide = line.chars().nth(before).is_some_and(|character| !character.is_ascii());
    marker.push(if is_wide { '\u{ff3e}' } else { '^' });
    marker
}
