//! How two structures differ, line by line, as the real server shows what may not change.

use serde_json::Value;

/// How many equal lines are shown around those that differ.
const CONTEXT: usize = 3;

/// A structure in lines, with its fields in the order in which they are given.
pub(super) fn structure(fields: &[(&str, Value)]) -> Vec<String> {
    let mut lines = vec!["{".to_owned()];
    for (index, (name, value)) in fields.iter().enumerate() {
        let mut written = written(value);
        if let Some(first) = written.first_mut() {
            *first = format!("{name:?}: {first}");
        }
        if let (true, Some(last)) = (index + 1 < fields.len(), written.last_mut()) {
            last.push(',');
        }
        lines.extend(written.into_iter().map(|line| format!(" {line}")));
    }
    lines.push("}".to_owned());
    lines
}

/// A value in lines, a space for each level.
fn written(value: &Value) -> Vec<String> {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // Writing a value into memory does not fail.
    let _infallible = serde::Serialize::serialize(value, &mut writer);
    String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
}

/// A stretch of lines: where it is in both texts, and how long.
#[derive(Clone, Copy)]
struct Match {
    before: usize,
    after: usize,
    length: usize,
}

/// The differing lines with those around them.
pub(super) fn difference(before: &[String], after: &[String]) -> String {
    let mut matches = Vec::new();
    collect(before, after, (0, before.len()), (0, after.len()), &mut matches);
    matches.push(Match { before: before.len(), after: after.len(), length: 0 });
    let mut pieces = Vec::new();
    let (mut old, mut new) = (0, 0);
    for found in matches {
        if old < found.before || new < found.after {
            pieces.push((old..found.before, new..found.after));
        }
        (old, new) = (found.before + found.length, found.after + found.length);
    }
    hunks(before, after, &pieces)
}

type Piece = (std::ops::Range<usize>, std::ops::Range<usize>);

fn hunks(before: &[String], after: &[String], pieces: &[Piece]) -> String {
    let mut text = String::new();
    let mut index = 0;
    while index < pieces.len() {
        let mut end = index;
        while pieces.get(end + 1).is_some_and(|next| next.0.start - pieces[end].0.end <= 2 * CONTEXT) {
            end += 1;
        }
        text.push_str(&hunk(before, after, &pieces[index..=end]));
        index = end + 1;
    }
    text
}

fn hunk(before: &[String], after: &[String], pieces: &[Piece]) -> String {
    let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return String::new() };
    let lead = first.0.start.min(CONTEXT);
    let tail = (before.len() - last.0.end).min(CONTEXT);
    let (start, end) = (first.0.start - lead, last.0.end + tail);
    let (new_start, new_end) = (first.1.start - lead, last.1.end + tail);
    let span = |start: usize, end: usize| match end - start {
        1 => format!("{}", start + 1),
        0 => format!("{start},0"),
        length => format!("{},{length}", start + 1),
    };
    let mut text = format!("@@ -{} +{} @@\n", span(start, end), span(new_start, new_end));
    let mut at = start;
    for (old, new) in pieces {
        before[at..old.start].iter().for_each(|line| text.push_str(&format!(" {line}\n")));
        before[old.clone()].iter().for_each(|line| text.push_str(&format!("-{line}\n")));
        after[new.clone()].iter().for_each(|line| text.push_str(&format!("+{line}\n")));
        at = old.end;
    }
    before[at..end].iter().for_each(|line| text.push_str(&format!(" {line}\n")));
    text
}

/// The longest stretch that both have, and then the same to its left and to its right.
fn collect(before: &[String], after: &[String], old: (usize, usize), new: (usize, usize), found: &mut Vec<Match>) {
    let Some(longest) = longest(before, after, old, new) else { return };
    collect(before, after, (old.0, longest.before), (new.0, longest.after), found);
    found.push(longest);
    let (old_rest, new_rest) = (longest.before + longest.length, longest.after + longest.length);
    collect(before, after, (old_rest, old.1), (new_rest, new.1), found);
}

fn longest(before: &[String], after: &[String], old: (usize, usize), new: (usize, usize)) -> Option<Match> {
    let mut best: Option<Match> = None;
    for start in old.0..old.1 {
        for other in new.0..new.1 {
            let length = before[start..old.1].iter().zip(&after[other..new.1]).take_while(|(a, b)| a == b).count();
            if length > best.map_or(0, |best| best.length) {
                best = Some(Match { before: start, after: other, length });
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_differs_is_shown_with_three_lines_around_it() {
        let (before, after) = (json!([1, 2, 3, 4, 5, 6]), json!([1, 2, 3, 4, 7, 6]));
        let shown = difference(&written(&before), &written(&after));
        assert_eq!(shown, "@@ -3,6 +3,6 @@\n  2,\n  3,\n  4,\n- 5,\n+ 7,\n  6\n ]\n");
    }
}
