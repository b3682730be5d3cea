//! Lines of the keys of a YAML document, which the library does not report: read from the text of its blocks.

use std::collections::BTreeSet;

/// A block mapping: its indentation, and its keys.
struct Block {
    indent: usize,
    keys: BTreeSet<String>,
}

/// Returns the repeated keys of each block mapping, with their lines from 1. Flow mappings are ignored.
pub(super) fn repeated(text: &str) -> Vec<(usize, String)> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut found, mut inside_text) = (Vec::new(), None);
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("---") && !found.is_empty() {
            break;
        }
        let mut indent = line.len() - line.trim_start_matches(' ').len();
        let mut rest = &line[indent..];
        if rest.is_empty() || rest.starts_with('#') || inside_text.is_some_and(|outer| indent > outer) {
            continue;
        }
        inside_text = None;
        while let Some(item) = rest.strip_prefix("- ") {
            // Each element of a list is a new mapping.
            blocks.retain(|block| block.indent <= indent);
            let padding = item.len() - item.trim_start().len();
            indent += 2 + padding;
            rest = item.trim_start();
        }
        blocks.retain(|block| block.indent <= indent);
        let Some((key, value)) = key_and_value(rest) else { continue };
        if value.starts_with(['|', '>']) {
            inside_text = Some(indent);
        }
        if blocks.last().is_none_or(|block| block.indent < indent) {
            blocks.push(Block { indent, keys: BTreeSet::new() });
        }
        let is_new = blocks.last_mut().is_none_or(|block| block.keys.insert(key.to_owned()));
        if !is_new {
            found.push((index + 1, key.to_owned()));
        }
    }
    found
}

fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(": ").or_else(|| Some((line.trim_end().strip_suffix(':')?, "")))?;
    let key = key.trim().trim_matches(['"', '\'']);
    (!key.starts_with(['{', '['])).then(|| (key, value.trim()))
}
