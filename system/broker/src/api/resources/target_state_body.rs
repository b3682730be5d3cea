//! JSON of a target state, whole or without the bundles that the agent has already, and without the names of stacks.

use std::ops::Range;

use bytes::Bytes;
use sindri_model::wire::{DeploymentObject, HeldRevisions};

use crate::memory::RevisionRanges;

/// Estimated size of a deployment object without its bundle.
const ENVELOPE_BYTES: usize = 512;
/// An empty bundle in the JSON of a deployment object. No field before it contains text of a client.
const EMPTY_BUNDLE: &[u8] = b"\"yaml_content\":\"\"";
/// The empty text in it.
const EMPTY_TEXT: &[u8] = b"\"\"";
/// Start of the last field of a deployment object, if it has one.
const NAME_FIELD: &[u8] = b",\"stack_name\":";
/// End of a deployment object.
const END: &[u8] = b"}";

/// Serializes revisions; returns the positions of their bundles and names too.
pub(super) fn serialize_revisions<'a>(
    revisions: impl Iterator<Item = &'a DeploymentObject>,
) -> (Bytes, Vec<RevisionRanges>) {
    let revisions: Vec<_> = revisions.collect();
    // The capacity is reserved at once, because a growing buffer is copied repeatedly. Line ends take two characters
    // in JSON.
    let capacity = revisions.iter().map(|revision| ENVELOPE_BYTES + revision.yaml_content.len() * 9 / 8).sum();
    let mut json = Vec::with_capacity(capacity);
    let mut positions = Vec::with_capacity(revisions.len());
    json.push(b'[');
    for (index, revision) in revisions.into_iter().enumerate() {
        if index > 0 {
            json.push(b',');
        }
        positions.push(append_revision(&mut json, revision));
    }
    json.push(b']');
    (json.into(), positions)
}

/// Appends the JSON of a revision; returns the positions of its bundle and of the name of its stack.
fn append_revision(json: &mut Vec<u8>, revision: &DeploymentObject) -> RevisionRanges {
    let envelope = DeploymentObject {
        yaml_content: String::new(),
        yaml_checksum: revision.yaml_checksum.clone(),
        stack_name: None,
        ..*revision
    };
    let envelope = serde_json::to_vec(&envelope).expect("every deployment object can be written as JSON");
    let empty = envelope.windows(EMPTY_BUNDLE.len()).position(|part| part == EMPTY_BUNDLE);
    let end = empty.expect("an empty bundle is written as an empty string") + EMPTY_BUNDLE.len();
    json.extend_from_slice(&envelope[..end - EMPTY_TEXT.len()]);
    let bundle = append_text(json, &revision.yaml_content);
    json.extend_from_slice(&envelope[end..envelope.len() - END.len()]);
    let start = json.len();
    if let Some(name) = &revision.stack_name {
        json.extend_from_slice(NAME_FIELD);
        append_text(json, name);
    }
    let name = start..json.len();
    json.extend_from_slice(END);
    RevisionRanges { sequence: revision.sequence_id, bundle, name }
}

/// Appends a text in JSON; returns its position.
fn append_text(json: &mut Vec<u8>, text: &str) -> Range<usize> {
    let start = json.len();
    serde_json::to_writer(&mut *json, text).expect("every text can be written as JSON");
    start..json.len()
}

/// Returns true if the client has the bundle of a revision, so that it can be left out.
pub(super) fn is_held(revision: &RevisionRanges, held: Option<&HeldRevisions>) -> bool {
    held.is_some_and(|held| held.contains(revision.sequence)) && revision.bundle.len() > EMPTY_TEXT.len()
}

/// Returns the JSON with empty texts instead of the bundles that are held, and without the names of stacks unless they are asked
/// for; `None` if nothing is left out.
pub(super) fn leave_out(
    json: &Bytes,
    revisions: &[RevisionRanges],
    held: Option<&HeldRevisions>,
    with_names: bool,
) -> Option<Bytes> {
    let mut cuts: Vec<(&Range<usize>, &[u8])> = Vec::new();
    for revision in revisions {
        if is_held(revision, held) {
            cuts.push((&revision.bundle, EMPTY_TEXT));
        }
        if !with_names && !revision.name.is_empty() {
            cuts.push((&revision.name, &[]));
        }
    }
    if cuts.is_empty() {
        return None;
    }
    let left_out: usize = cuts.iter().map(|(range, rest)| range.len() - rest.len()).sum();
    let mut shorter = Vec::with_capacity(json.len() - left_out);
    let mut end = 0;
    for (range, rest) in cuts {
        shorter.extend_from_slice(&json[end..range.start]);
        shorter.extend_from_slice(rest);
        end = range.end;
    }
    shorter.extend_from_slice(&json[end..]);
    Some(shorter.into())
}

#[cfg(test)]
mod tests {
    use sindri_model::{Checksum, Entropy, RevisionId, Sequence, StackId};

    use super::*;

    fn revision(sequence: i64, yaml: &str) -> DeploymentObject {
        let (entropy, time) = (Entropy::new(move |bytes| bytes.fill(sequence as u8)), "2024-01-01T00:00:00Z");
        DeploymentObject {
            id: RevisionId::generate(&entropy),
            created_at: time.parse().unwrap(),
            updated_at: time.parse().unwrap(),
            deleted_at: None,
            sequence_id: Sequence(sequence),
            stack_id: StackId::generate(&entropy),
            yaml_content: yaml.to_owned(),
            yaml_checksum: Checksum::compute(yaml),
            submitted_at: time.parse().unwrap(),
            is_deletion_marker: yaml.is_empty(),
            stack_name: Some(r#"a "yaml_content":"" b"#.to_owned()),
        }
    }

    #[test]
    fn revisions_are_written_as_serde_writes_them_and_only_held_bundles_are_left_out() {
        let texts = ["a: \"1\"\n", "", "\"yaml_content\":\"\"", "b: \u{e9}\\\n", "c"];
        let revisions: Vec<_> = (1..).zip(texts).map(|(sequence, text)| revision(sequence, text)).collect();
        let (json, positions) = serialize_revisions(revisions.iter());
        assert_eq!(json, serde_json::to_vec(&revisions).unwrap());
        for held in [vec![], vec![1], vec![2], vec![1, 3, 5], vec![1, 2, 3, 4, 5], vec![9]] {
            let mut expected = revisions.clone();
            let is_held = |revision: &&mut DeploymentObject| held.contains(&revision.sequence_id.0);
            expected.iter_mut().filter(is_held).for_each(|revision| revision.yaml_content.clear());
            let held: Vec<&DeploymentObject> =
                revisions.iter().filter(|revision| held.contains(&revision.sequence_id.0)).collect();
            let held = HeldRevisions::from_revisions(&held);
            let shorter = leave_out(&json, &positions, Some(&held), true);
            assert_eq!(shorter.unwrap_or(json.clone()), serde_json::to_vec(&expected).unwrap());
            expected.iter_mut().for_each(|revision| revision.stack_name = None);
            let nameless = leave_out(&json, &positions, Some(&held), false);
            assert_eq!(nameless.unwrap(), serde_json::to_vec(&expected).unwrap());
        }
        assert_eq!(serialize_revisions([].iter()).0, "[]");
    }
}
