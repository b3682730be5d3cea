//! Revisions whose bundles a client has already, as a header of a poll: the broker leaves these bundles out of its response.
//!
//! The value is a list of ascending numbers: the first sequence, and then the difference to each next one, so that a thousand
//! revisions fit in a header.

use std::collections::BTreeSet;
use std::fmt;

use super::DeploymentObject;
use crate::Sequence;

/// Header of a poll request with the revisions whose bundles the client has. In the response their `yaml_content` is empty.
pub const HELD_REVISIONS_HEADER: &str = "sindri-held-revisions";

/// Longest value: proxies limit a header to some kilobytes.
const VALUE_BYTES_MAX: usize = 4 * 1024;

/// Revisions whose bundles a client has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldRevisions(BTreeSet<Sequence>);

impl HeldRevisions {
    /// Returns the revisions that fit in the header; those with the smallest bundles are left out first. The bundle of a
    /// removal is empty, and need not be held.
    pub fn from_revisions(revisions: &[&DeploymentObject]) -> Self {
        let mut by_size: Vec<&DeploymentObject> = revisions.to_vec();
        by_size.retain(|revision| !revision.yaml_content.is_empty());
        by_size.sort_by_key(|revision| std::cmp::Reverse(revision.yaml_content.len()));
        loop {
            let held = Self(by_size.iter().map(|revision| revision.sequence_id).collect());
            if held.to_string().len() <= VALUE_BYTES_MAX {
                return held;
            }
            by_size.truncate(by_size.len() * 3 / 4);
        }
    }

    /// Parses the value of the header; `None` if it is not one.
    pub fn parse(value: &str) -> Option<Self> {
        let mut held = BTreeSet::new();
        let mut last = 0_i64;
        for number in value.split(',').filter(|_| value.len() <= VALUE_BYTES_MAX) {
            last = last.checked_add(number.parse().ok().filter(|number| *number > 0)?)?;
            held.insert(Sequence(last));
        }
        (!held.is_empty()).then_some(Self(held))
    }

    /// Returns true if no revision is held.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the client has the bundle of this revision.
    pub fn contains(&self, sequence: Sequence) -> bool {
        self.0.contains(&sequence)
    }
}

impl fmt::Display for HeldRevisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = 0;
        for (index, sequence) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            write!(f, "{separator}{}", sequence.0 - last)?;
            last = sequence.0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checksum, Entropy, Epoch, RevisionId, StackId};

    fn revision(sequence: i64, bytes: usize) -> DeploymentObject {
        let (entropy, time) = (Entropy::new(|bytes| bytes.fill(1)), "2024-01-01T00:00:00Z".parse().unwrap());
        let yaml_content = "a".repeat(bytes);
        DeploymentObject {
            id: RevisionId::generate(&entropy),
            created_at: time,
            updated_at: time,
            deleted_at: None,
            sequence_id: Sequence(sequence),
            stack_id: StackId::generate(&entropy),
            yaml_checksum: Checksum::compute(&yaml_content),
            yaml_content,
            submitted_at: time,
            is_deletion_marker: bytes == 0,
            stack_name: None,
        }
    }

    fn held(revisions: &[DeploymentObject]) -> HeldRevisions {
        HeldRevisions::from_revisions(&revisions.iter().collect::<Vec<_>>())
    }

    #[test]
    fn sequences_are_sent_as_differences_and_read_again() {
        let epoch = Epoch(3).start().0;
        let revisions = [revision(7, 1), revision(9, 1), revision(epoch + 1, 1), revision(epoch + 5, 0)];
        let value = held(&revisions).to_string();
        assert_eq!(value, format!("7,2,{}", epoch - 8));
        let parsed = HeldRevisions::parse(&value).unwrap();
        assert_eq!(parsed, held(&revisions));
        assert!(parsed.contains(Sequence(9)) && !parsed.contains(Sequence(2)) && !parsed.contains(Sequence(epoch + 5)));
    }

    #[test]
    fn a_long_list_leaves_out_the_smallest_bundles() {
        let revisions: Vec<_> = (1..=3_000).map(|number| revision(number * 1_000, number as usize)).collect();
        let held = held(&revisions);
        assert!(held.to_string().len() <= VALUE_BYTES_MAX);
        assert!(held.contains(Sequence(3_000_000)) && !held.contains(Sequence(1_000)));
        assert!(held.0.len() > 500, "{}", held.0.len());
    }

    #[test]
    fn any_other_value_is_no_list() {
        for value in ["", ",", "a", "1,", "1,0", "-1", "1,-1", "9223372036854775807,1", &"1,".repeat(3_000)] {
            assert_eq!(HeldRevisions::parse(value), None, "{value}");
        }
    }
}
