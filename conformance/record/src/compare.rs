//! Differences between two recordings, as readable lines.

use crate::files::Files;

/// Maximum number of differing lines of one file.
const LINES_MAX: usize = 12;

/// One file that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Path.
    pub file: String,
    /// Description of the difference.
    pub lines: Vec<String>,
}

/// Returns all differences between the stored and a new recording.
pub fn differences(stored: &Files, recorded: &Files) -> Vec<Difference> {
    let mut names: Vec<&String> = stored.keys().chain(recorded.keys()).collect();
    names.sort();
    names.dedup();
    let difference = |name: &String| {
        let lines = match (stored.get(name), recorded.get(name)) {
            (Some(stored), Some(recorded)) if stored == recorded => return None,
            (Some(stored), Some(recorded)) => changed_lines(stored, recorded),
            (Some(_), None) => vec!["is stored and was not recorded".to_owned()],
            (None, _) => vec!["was recorded and is not stored".to_owned()],
        };
        Some(Difference { file: name.clone(), lines })
    };
    names.into_iter().filter_map(difference).collect()
}

/// Returns the lines between the common start and the common end of two texts.
fn changed_lines(stored: &str, recorded: &str) -> Vec<String> {
    let (stored, recorded): (Vec<&str>, Vec<&str>) = (stored.lines().collect(), recorded.lines().collect());
    let same_start = stored.iter().zip(&recorded).take_while(|(stored, recorded)| stored == recorded).count();
    let (stored_rest, recorded_rest) = (&stored[same_start..], &recorded[same_start..]);
    let ends = stored_rest.iter().rev().zip(recorded_rest.iter().rev());
    let same_end = ends.take_while(|(stored, recorded)| stored == recorded).count();
    let mut lines = vec![format!("line {}:", same_start + 1)];
    for (sign, rest) in [('-', stored_rest), ('+', recorded_rest)] {
        let differing = &rest[..rest.len() - same_end];
        lines.extend(differing.iter().take(LINES_MAX).map(|line| format!("{sign} {line}")));
        if differing.len() > LINES_MAX {
            lines.push(format!("{sign} … and {} more", differing.len() - LINES_MAX));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: &[(&str, &str)]) -> Files {
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn equal_recordings_do_not_differ() {
        assert_eq!(differences(&files(&[("a", "1\n")]), &files(&[("a", "1\n")])), []);
    }

    #[test]
    fn missing_new_and_changed_files_are_distinguished() {
        let stored = files(&[("gone", "1"), ("same", "2"), ("text", "a\nb\nc\n")]);
        let recorded = files(&[("new", "1"), ("same", "2"), ("text", "a\nx\ny\nc\n")]);
        let difference = |file: &str, lines: &[&str]| Difference {
            file: file.to_owned(),
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        };
        let expected = [
            difference("gone", &["is stored and was not recorded"]),
            difference("new", &["was recorded and is not stored"]),
            difference("text", &["line 2:", "- b", "+ x", "+ y"]),
        ];
        assert_eq!(differences(&stored, &recorded), expected);
    }
}
