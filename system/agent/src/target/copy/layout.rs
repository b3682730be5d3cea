//! Distribution of the copy over Secrets, each well below the size limit of an object. Pure.
//!
//! Each Secret is a chunk of parts; a part is the record of one stack, or a piece of a large one. A part stays in its chunk
//! while its stack does not change, so that a changed stack costs one write. Every part names its stack and sequence: after
//! an interrupted save a stack is read in its former revision, in its new one, or not at all, and never as a mixture.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sindri_model::{AgentId, Epoch, RevisionId, Sequence, StackId};

use super::record::{StackCopy, encode};
use crate::target::revision::Revision;

/// Largest part.
const PART_BYTES_MAX: usize = 384 * 1024;
/// Largest sum of the parts of a chunk: an object has at most about a mebibyte.
const CHUNK_BYTES_MAX: usize = 768 * 1024;
/// Most chunks. Stacks that do not fit are left out of the copy.
pub const CHUNKS_MAX: usize = 40;

/// Description of a copy, in every chunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyHeader {
    /// Id of the agent whose target state it is.
    pub agent: AgentId,
    /// Name of the agent.
    pub name: String,
    /// Name of the agent's cluster.
    pub cluster_name: String,
    /// Epoch of the broker's database.
    pub epoch: Epoch,
}

/// Key of a part in the data of its Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartKey {
    stack: StackId,
    sequence: Sequence,
    /// Index among the parts of the record.
    index: usize,
    /// Number of parts of the record.
    count: usize,
}

impl fmt::Display for PartKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stack, sequence, index, count } = self;
        write!(f, "{stack}.{sequence}.{index}-of-{count}")
    }
}

impl FromStr for PartKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (stack, rest) = text.split_once('.')?;
            let (sequence, rest) = rest.split_once('.')?;
            let (index, count) = rest.split_once("-of-")?;
            let sequence = Sequence(sequence.parse().ok()?);
            let (index, count) = (index.parse().ok()?, count.parse().ok()?);
            Some(Self { stack: stack.parse().ok()?, sequence, index, count })
        };
        parse().ok_or_else(|| format!("the key {text:?} does not name a part"))
    }
}

/// Content of one Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Parts of records.
    pub parts: BTreeMap<PartKey, Vec<u8>>,
    /// resourceVersion of the Secret; `None` until it exists.
    pub resource_version: Option<String>,
}

impl Chunk {
    fn size(&self) -> usize {
        self.parts.values().map(Vec::len).sum()
    }
}

/// Stack as the copy has it.
type Stored = (RevisionId, BTreeMap<String, String>);

/// Stacks that a copy should have.
pub type CopyContent = Vec<(Arc<Revision>, BTreeMap<String, String>)>;

/// A copy, distributed over chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyLayout {
    /// Chunks by the index of their Secret.
    pub chunks: BTreeMap<usize, Chunk>,
    /// `None` while there is no chunk, or the chunks do not agree.
    header: Option<CopyHeader>,
    stored: BTreeMap<StackId, Stored>,
    /// Chunks whose Secrets could not be read. The next save replaces them.
    unreadable: BTreeSet<usize>,
}

/// Changes that a save has to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyChanges {
    /// Chunks that changed.
    pub dirty: BTreeSet<usize>,
    /// Stacks that do not fit.
    pub left_out: Vec<StackId>,
}

impl CopyLayout {
    /// Returns the layout of chunks as they were read, and the stacks that are complete and valid. `log` receives a sentence
    /// for each part that cannot be used; the next save replaces it.
    pub fn from_chunks(
        chunks: BTreeMap<usize, (CopyHeader, Chunk)>,
        mut log: impl FnMut(String),
    ) -> (Self, Vec<StackCopy>) {
        let mut headers = chunks.values().map(|(header, _)| header);
        let header = headers.next().filter(|first| headers.all(|header| header == *first)).cloned();
        let is_mixed = header.is_none() && !chunks.is_empty();
        let chunks = chunks.into_iter().map(|(index, (_, chunk))| (index, chunk)).collect();
        let mut layout = Self { chunks, header, ..Self::default() };
        let Some(header) = layout.header.as_ref() else {
            if is_mixed {
                log("the Secrets are of different agents or epochs".to_owned());
            }
            return (layout, Vec::new());
        };
        let stacks = layout.read_stacks(header.epoch, &mut log);
        for copy in &stacks {
            layout.stored.insert(copy.revision.stack_id, (copy.revision.id, copy.annotations.clone()));
        }
        (layout, stacks)
    }

    /// Adds the chunks of Secrets that could not be read, without parts.
    pub fn add_unreadable(&mut self, chunks: BTreeMap<usize, Chunk>) {
        self.unreadable.extend(chunks.keys());
        self.chunks.extend(chunks);
    }

    /// Returns the header, if the chunks agree on it.
    pub fn header(&self) -> Option<&CopyHeader> {
        self.header.as_ref()
    }

    /// Returns the newest valid record of each stack, by sequence.
    fn read_stacks(&self, epoch: Epoch, log: &mut impl FnMut(String)) -> Vec<StackCopy> {
        let mut records: BTreeMap<(Sequence, StackId), BTreeMap<usize, &[u8]>> = BTreeMap::new();
        let mut counts = BTreeMap::new();
        for (key, part) in self.chunks.values().flat_map(|chunk| &chunk.parts) {
            records.entry((key.sequence, key.stack)).or_default().insert(key.index, part);
            counts.insert((key.sequence, key.stack), key.count);
        }
        let mut stacks: BTreeMap<StackId, StackCopy> = BTreeMap::new();
        for ((sequence, stack), parts) in records {
            let is_complete = parts.len() == counts[&(sequence, stack)] && parts.keys().copied().eq(0..parts.len());
            let joined: Vec<u8> = parts.into_values().flatten().copied().collect();
            let decoded = match is_complete {
                true => StackCopy::decode(&joined, epoch),
                false => Err("parts of it are missing".to_owned()),
            };
            let is_named = |copy: &StackCopy| (copy.revision.sequence_id, copy.revision.stack_id) == (sequence, stack);
            match decoded {
                Ok(copy) if is_named(&copy) => drop(stacks.insert(stack, copy)),
                Ok(_) => log(format!("stack {stack}: it holds another revision than its key says")),
                Err(cause) => log(format!("stack {stack}: {cause}")),
            }
        }
        let mut stacks: Vec<StackCopy> = stacks.into_values().collect();
        stacks.sort_by_key(|copy| copy.revision.sequence_id);
        stacks
    }

    /// Changes the layout to this content.
    pub fn update(&mut self, header: CopyHeader, content: &CopyContent) -> CopyChanges {
        let mut changes = CopyChanges { dirty: std::mem::take(&mut self.unreadable), left_out: Vec::new() };
        if self.header.as_ref() != Some(&header) {
            changes.dirty.extend(self.chunks.keys());
            self.header = Some(header);
        }
        let is_stored = |stored: &BTreeMap<StackId, Stored>, revision: &Revision, annotations| {
            stored.get(&revision.stack_id).is_some_and(|(id, known)| *id == revision.id && known == annotations)
        };
        let kept: BTreeSet<(StackId, Sequence)> = content
            .iter()
            .filter(|(revision, annotations)| is_stored(&self.stored, revision, annotations))
            .map(|(revision, _)| (revision.stack_id, revision.sequence_id))
            .collect();
        let former = self.remove_others(&kept, &mut changes.dirty);
        self.stored.retain(|stack, _| kept.iter().any(|(kept, _)| kept == stack));
        for (revision, annotations) in content {
            if kept.contains(&(revision.stack_id, revision.sequence_id)) {
                continue;
            }
            let preferred = former.get(&revision.stack_id).copied();
            if self.insert(revision, &encode(annotations, revision), preferred, &mut changes.dirty) {
                self.stored.insert(revision.stack_id, (revision.id, annotations.clone()));
            } else {
                changes.left_out.push(revision.stack_id);
            }
        }
        changes
    }

    /// Removes every stack.
    pub fn clear(&mut self) -> CopyChanges {
        let mut changes = CopyChanges { dirty: std::mem::take(&mut self.unreadable), left_out: Vec::new() };
        self.remove_others(&BTreeSet::new(), &mut changes.dirty);
        self.stored.clear();
        changes
    }

    /// Removes the parts that are not kept. Returns the chunks from which parts of each stack were removed.
    fn remove_others(
        &mut self,
        kept: &BTreeSet<(StackId, Sequence)>,
        dirty: &mut BTreeSet<usize>,
    ) -> BTreeMap<StackId, usize> {
        let mut former = BTreeMap::new();
        for (index, chunk) in &mut self.chunks {
            chunk.parts.retain(|key, _| {
                let is_kept = kept.contains(&(key.stack, key.sequence));
                if !is_kept {
                    former.insert(key.stack, *index);
                    dirty.insert(*index);
                }
                is_kept
            });
        }
        former
    }

    /// Adds a record, if possible to the preferred chunk; returns false if it does not fit.
    fn insert(
        &mut self,
        revision: &Revision,
        record: &[u8],
        preferred: Option<usize>,
        dirty: &mut BTreeSet<usize>,
    ) -> bool {
        let parts: Vec<&[u8]> = record.chunks(PART_BYTES_MAX).collect();
        let Some(chunks) = self.find_room(&parts, preferred) else { return false };
        let (stack, sequence, count) = (revision.stack_id, revision.sequence_id, parts.len());
        for (index, (part, chunk)) in parts.into_iter().zip(chunks).enumerate() {
            let key = PartKey { stack, sequence, index, count };
            self.chunks.entry(chunk).or_default().parts.insert(key, part.to_vec());
            dirty.insert(chunk);
        }
        true
    }

    /// Returns a chunk for each part; `None` if there is not enough room.
    fn find_room(&self, parts: &[&[u8]], preferred: Option<usize>) -> Option<Vec<usize>> {
        let mut sizes: BTreeMap<usize, usize> =
            self.chunks.iter().map(|(index, chunk)| (*index, chunk.size())).collect();
        let mut find = |part: &&[u8]| {
            let size = |index: &usize| sizes.get(index).copied().unwrap_or_default() + part.len();
            let mut candidates = preferred.into_iter().chain(0..CHUNKS_MAX);
            let chunk = candidates.find(|index| size(index) <= CHUNK_BYTES_MAX)?;
            let size = size(&chunk);
            sizes.insert(chunk, size);
            Some(chunk)
        };
        parts.iter().map(&mut find).collect()
    }
}

#[cfg(test)]
mod tests {
    use sindri_model::wire::DeploymentObject;

    use super::*;
    use crate::target::copy::fixtures::{header, revision};

    /// Returns the layout that a new process reads from these chunks, its stacks, and what it logs.
    fn reread(layout: &CopyLayout) -> (CopyLayout, Vec<StackCopy>, Vec<String>) {
        let header = layout.header().unwrap();
        let chunks = layout.chunks.iter().map(|(index, chunk)| (*index, (header.clone(), chunk.clone()))).collect();
        let mut log = Vec::new();
        let (layout, stacks) = CopyLayout::from_chunks(chunks, |line| log.push(line));
        (layout, stacks, log)
    }

    fn content(revisions: impl IntoIterator<Item = DeploymentObject>) -> CopyContent {
        revisions.into_iter().map(|wire| (Arc::new(Revision::from_wire(wire)), BTreeMap::new())).collect()
    }

    /// Text that gzip cannot make smaller than about its size.
    fn incompressible(bytes: usize, seed: u64) -> String {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'!' + ((state >> 33) % 94) as u8)
        };
        (0..bytes).map(|_| next()).collect()
    }

    #[test]
    fn a_copy_is_read_as_it_was_written_and_an_equal_content_writes_nothing() {
        let mut wanted =
            content([revision(1, 1, "a: 1"), revision(2, 2, &incompressible(1_500_000, 7)), revision(3, 3, "")]);
        wanted[0].1.insert("sindri.dev/drift".to_owned(), "detect".to_owned());
        let mut layout = CopyLayout::default();
        let changes = layout.update(header(1), &wanted);
        assert_eq!((changes.dirty.len(), changes.left_out.len()), (layout.chunks.len(), 0));
        assert!(layout.chunks.len() > 1 && layout.chunks.values().all(|chunk| chunk.size() <= CHUNK_BYTES_MAX));
        let (mut again, stacks, log) = reread(&layout);
        let expected = wanted.iter().map(|(revision, annotations)| StackCopy {
            annotations: annotations.clone(),
            revision: DeploymentObject::clone(revision),
        });
        assert_eq!((stacks, log), (expected.collect(), Vec::new()));
        assert_eq!(again.update(header(1), &wanted), CopyChanges::default(), "a new process writes nothing");
        assert_eq!(layout.update(header(1), &wanted), CopyChanges::default());
    }

    #[test]
    fn a_changed_stack_costs_one_write_and_others_stay_in_their_chunks() {
        let stack = |number: u8, sequence| revision(number, sequence, &incompressible(200_000, sequence as u64));
        let mut wanted = content((1..=12).map(|number| stack(number, number.into())));
        let mut layout = CopyLayout::default();
        layout.update(header(1), &wanted);
        assert!(layout.chunks.len() >= 3);
        for (number, sequence) in [(5, 100), (12, 101), (1, 102)] {
            wanted[usize::from(number) - 1] = content([stack(number, sequence)]).remove(0);
            assert_eq!(layout.update(header(1), &wanted).dirty.len(), 1, "stack {number}");
        }
        wanted.remove(3);
        assert_eq!(layout.update(header(1), &wanted).dirty.len(), 1, "a stack that is gone");
        wanted[0].1.insert("sindri.dev/drift".to_owned(), "off".to_owned());
        assert_eq!(layout.update(header(1), &wanted).dirty.len(), 1, "a changed policy");
        assert_eq!(layout.update(header(2), &wanted).dirty.len(), layout.chunks.len(), "another epoch");
        assert_eq!(reread(&layout).1.len(), 11);
        assert_eq!(layout.clear().dirty.len(), layout.chunks.len());
        assert_eq!((reread(&layout).1, layout.clear()), (Vec::new(), CopyChanges::default()));
    }

    #[test]
    fn damaged_and_incomplete_records_are_ignored_and_replaced_by_the_next_save() {
        let wanted = content([revision(1, 1, "a: 1"), revision(2, 2, &incompressible(1_000_000, 3))]);
        let mut layout = CopyLayout::default();
        layout.update(header(1), &wanted);
        let keys: Vec<(usize, PartKey)> =
            layout.chunks.iter().flat_map(|(index, chunk)| chunk.parts.keys().map(|key| (*index, *key))).collect();
        assert!(keys.len() > 3);
        for (index, key) in keys {
            for damage in [None, Some(Vec::new()), Some(b"not gzip".to_vec())] {
                let mut damaged = layout.clone();
                let parts = &mut damaged.chunks.get_mut(&index).unwrap().parts;
                match damage {
                    Some(bytes) => drop(parts.insert(key, bytes)),
                    None => drop(parts.remove(&key)),
                }
                let (mut again, stacks, log) = reread(&damaged);
                let is_gone = key.count == 1 && !damaged.chunks[&index].parts.contains_key(&key);
                assert_eq!((stacks.len(), log.len()), (1, usize::from(!is_gone)), "{key}");
                assert!(stacks.iter().all(|copy| copy.revision.stack_id != key.stack));
                assert!(!again.update(header(1), &wanted).dirty.is_empty());
                assert_eq!(reread(&again).1.len(), 2, "the next save replaces it");
            }
        }
    }

    #[test]
    fn an_interrupted_save_never_leaves_a_mixture_of_two_revisions() {
        let large = |sequence| content([revision(1, sequence, &incompressible(1_000_000, sequence as u64))]);
        let mut before = CopyLayout::default();
        before.update(header(1), &large(1));
        let mut after = before.clone();
        let dirty = after.update(header(1), &large(2)).dirty;
        assert!(dirty.len() > 1);
        for written in &dirty {
            let mut partial = before.clone();
            partial.chunks.insert(*written, after.chunks[written].clone());
            let (_, stacks, log) = reread(&partial);
            assert!(stacks.iter().all(|copy| [1, 2].contains(&copy.revision.sequence_id.0)));
            assert!(stacks.len() == 1 || !log.is_empty());
        }
    }

    #[test]
    fn chunks_of_different_agents_or_epochs_are_not_a_copy() {
        let mut layout = CopyLayout::default();
        layout.update(header(1), &content([revision(1, 1, &incompressible(1_000_000, 3))]));
        let mixed = layout.chunks.iter().map(|(index, chunk)| (*index, (header(1 + *index as i64), chunk.clone())));
        let mut log = Vec::new();
        let (layout, stacks) = CopyLayout::from_chunks(mixed.collect(), |line| log.push(line));
        assert_eq!((layout.header(), stacks.len(), log.len()), (None, 0, 1));
        assert_eq!(CopyLayout::from_chunks(BTreeMap::new(), |line| panic!("{line}")).1, Vec::new());
    }

    #[test]
    fn a_stack_that_does_not_fit_is_left_out() {
        let large = CHUNK_BYTES_MAX * CHUNKS_MAX / 2;
        let wanted =
            content((1..=3).map(|number| revision(number, number.into(), &incompressible(large, number.into()))));
        let mut layout = CopyLayout::default();
        let changes = layout.update(header(1), &wanted);
        assert_eq!(changes.left_out, [wanted[2].0.stack_id]);
        assert!(layout.chunks.len() <= CHUNKS_MAX);
    }
}
