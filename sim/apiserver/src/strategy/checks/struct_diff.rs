//! Line diff of two Go structs, as the real server shows changes of immutable specs.

use serde_json::Value;

/// Number of equal lines around a difference.
const CONTEXT: usize = 3;

/// Formats a struct as lines, with its fields in the given order.
pub(crate) fn format_struct(fields: &[(&str, Value)]) -> Vec<String> {
    let mut lines = vec!["{".to_owned()];
    for (index, (name, value)) in fields.iter().enumerate() {
        let mut value_lines = format_lines(value);
        if let Some(first) = value_lines.first_mut() {
            *first = format!("{name:?}: {first}");
        }
        if let (true, Some(last)) = (index + 1 < fields.len(), value_lines.last_mut()) {
            last.push(',');
        }
        lines.extend(value_lines.into_iter().map(|line| format!(" {line}")));
    }
    lines.push("}".to_owned());
    lines
}

/// Formats a value as lines, indented by one space per level.
fn format_lines(value: &Value) -> Vec<String> {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // Serializing to memory does not fail.
    let _infallible = serde::Serialize::serialize(value, &mut writer);
    String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
}

/// A block of equal lines: its positions in both texts, and its length.
#[derive(Clone, Copy)]
struct EqualBlock {
    before: usize,
    after: usize,
    length: usize,
}

/// Returns the unified diff of two texts.
pub(crate) fn format_difference(before: &[String], after: &[String]) -> String {
    let mut blocks = Vec::new();
    collect_equal_blocks(before, after, (0, before.len()), (0, after.len()), &mut blocks);
    blocks.push(EqualBlock { before: before.len(), after: after.len(), length: 0 });
    let mut changes = Vec::new();
    let (mut old, mut new) = (0, 0);
    for block in blocks {
        if old < block.before || new < block.after {
            changes.push((old..block.before, new..block.after));
        }
        (old, new) = (block.before + block.length, block.after + block.length);
    }
    format_hunks(before, after, &changes)
}

/// Changed line ranges of both texts.
type LineChange = (std::ops::Range<usize>, std::ops::Range<usize>);

fn format_hunks(before: &[String], after: &[String], changes: &[LineChange]) -> String {
    let mut text = String::new();
    let mut index = 0;
    while index < changes.len() {
        let mut end = index;
        while changes.get(end + 1).is_some_and(|next| next.0.start - changes[end].0.end <= 2 * CONTEXT) {
            end += 1;
        }
        text.push_str(&format_hunk(before, after, &changes[index..=end]));
        index = end + 1;
    }
    text
}

fn format_hunk(before: &[String], after: &[String], changes: &[LineChange]) -> String {
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return String::new() };
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
    let mut position = start;
    for (old, new) in changes {
        before[position..old.start].iter().for_each(|line| text.push_str(&format!(" {line}\n")));
        before[old.clone()].iter().for_each(|line| text.push_str(&format!("-{line}\n")));
        after[new.clone()].iter().for_each(|line| text.push_str(&format!("+{line}\n")));
        position = old.end;
    }
    before[position..end].iter().for_each(|line| text.push_str(&format!(" {line}\n")));
    text
}

/// Finds the longest equal block, then recurses to its left and right.
fn collect_equal_blocks(
    before: &[String],
    after: &[String],
    old: (usize, usize),
    new: (usize, usize),
    blocks: &mut Vec<EqualBlock>,
) {
    let Some(longest) = longest_equal_block(before, after, old, new) else { return };
    collect_equal_blocks(before, after, (old.0, longest.before), (new.0, longest.after), blocks);
    blocks.push(longest);
    let (old_rest, new_rest) = (longest.before + longest.length, longest.after + longest.length);
    collect_equal_blocks(before, after, (old_rest, old.1), (new_rest, new.1), blocks);
}

fn longest_equal_block(
    before: &[String],
    after: &[String],
    old: (usize, usize),
    new: (usize, usize),
) -> Option<EqualBlock> {
    let mut best: Option<EqualBlock> = None;
    for start in old.0..old.1 {
        for other in new.0..new.1 {
            let length = before[start..old.1].iter().zip(&after[other..new.1]).take_while(|(a, b)| a == b).count();
            if length > best.map_or(0, |best| best.length) {
                best = Some(EqualBlock { before: start, after: other, length });
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
    fn differences_have_three_lines_of_context() {
        let (before, after) = (json!([1, 2, 3, 4, 5, 6]), json!([1, 2, 3, 4, 7, 6]));
        let diff = format_difference(&format_lines(&before), &format_lines(&after));
        assert_eq!(diff, "@@ -3,6 +3,6 @@\n  2,\n  3,\n  4,\n- 5,\n+ 7,\n  6\n ]\n");
    }
}
