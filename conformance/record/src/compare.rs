//! How two recordings differ, in lines that people can read.

use crate::files::Files;

/// How many differing lines of one file are shown.
const LINES_MAX: usize = 12;

/// One file that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its path.
    pub file: String,
    /// What differs.
    pub lines: Vec<String>,
}

/// Every difference between what is kept and what was found now.
pub fn differences(kept: &Files, found: &Files) -> Vec<Difference> {
    let mut names: Vec<&String> = kept.keys().chain(found.keys()).collect();
    names.sort();
    names.dedup();
    let difference = |name: &String| {
        let lines = match (kept.get(name), found.get(name)) {
            (Some(kept), Some(found)) if kept == found => return None,
            (Some(kept), Some(found)) => changed(kept, found),
            (Some(_), None) => vec!["is kept and was not recorded".to_owned()],
            (None, _) => vec!["was recorded and is not kept".to_owned()],
        };
        Some(Difference { file: name.clone(), lines })
    };
    names.into_iter().filter_map(difference).collect()
}

/// The lines between what two texts begin and end with alike.
fn changed(kept: &str, found: &str) -> Vec<String> {
    let (kept, found): (Vec<&str>, Vec<&str>) = (kept.lines().collect(), found.lines().collect());
    let same_start = kept.iter().zip(&found).take_while(|(kept, found)| kept == found).count();
    let (kept_rest, found_rest) = (&kept[same_start..], &found[same_start..]);
    let same_end =
        kept_rest.iter().rev().zip(found_rest.iter().rev()).take_while(|(kept, found)| kept == found).count();
    let mut lines = vec![format!("line {}:", same_start + 1)];
    for (sign, rest) in [('-', kept_rest), ('+', found_rest)] {
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
    fn missing_new_and_changed_files_are_told_apart() {
        let kept = files(&[("gone", "1"), ("same", "2"), ("text", "a\nb\nc\n")]);
        let found = files(&[("new", "1"), ("same", "2"), ("text", "a\nx\ny\nc\n")]);
        let difference = |file: &str, lines: &[&str]| Difference {
            file: file.to_owned(),
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        };
        let expected = [
            difference("gone", &["is kept and was not recorded"]),
            difference("new", &["was recorded and is not kept"]),
            difference("text", &["line 2:", "- b", "+ x", "+ y"]),
        ];
        assert_eq!(differences(&kept, &found), expected);
    }
}
