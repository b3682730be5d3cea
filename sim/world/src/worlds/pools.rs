//! Names and values that random worlds draw from. The pools are small, so that stacks, people and faults meet often.

use crate::rng::SeededRng;

/// Names of clusters and their agents.
pub const CLUSTERS: [&str; 5] = ["east", "west", "north", "south", "center"];
/// Names of stacks.
pub const STACKS: [&str; 8] = ["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen"];
/// Namespaces that bundles use; every cluster has `default`, the others have to be created.
pub const NAMESPACES: [&str; 3] = ["default", "shop", "mall"];
/// Prefix of keys in ConfigMaps that single revisions declare, and that only the agent writes.
pub const PART_PREFIX: &str = "part-";
/// Content of every Secret. It must appear in no log line, event, condition or trace.
pub const SECRET_CANARY: &str = "canary-5f0e1d";
/// Label of the objects that people create. The end of a world removes them.
pub const PERSON_LABEL: &str = "example.com/created-by";
/// Finalizer that people add to objects. The end of a world removes it.
pub const PERSON_FINALIZER: &str = "example.com/hold";
/// Annotation of documents that are wrong on purpose.
pub const INVALID_ANNOTATION: &str = "example.com/invalid";

/// Chooses one item.
pub fn choose<'a, T>(rng: &mut SeededRng, items: &'a [T]) -> &'a T {
    &items[(rng.next_u64() % items.len() as u64) as usize]
}

/// Chooses one value by its weight.
pub fn choose_weighted<T: Copy>(rng: &mut SeededRng, weighted: &[(u64, T)]) -> T {
    let total: u64 = weighted.iter().map(|(weight, _)| weight).sum();
    let mut left = rng.between(1, total);
    for (weight, value) in weighted {
        if left <= *weight {
            return *value;
        }
        left -= weight;
    }
    weighted[0].1
}
