//! Size of the policies of a stack, which limits a page of them.

use sindri_model::wire::{DEPENDS_ON_ANNOTATION, StackPolicy};

/// Bytes in a response for each byte of the annotation that names dependencies: each name is there once more, with the id of its
/// stack.
pub(crate) const DEPENDENCIES_FACTOR: usize = 32;

/// Returns the size of the policies of a stack in a response.
pub(crate) fn policy_bytes(policy: &StackPolicy) -> usize {
    let annotations = policy.annotations.iter();
    annotations
        .map(|(key, value)| {
            key.len() + value.len() * if key == DEPENDS_ON_ANNOTATION { DEPENDENCIES_FACTOR } else { 1 }
        })
        .sum()
}
