//! Names of stacks in an overview.

use std::collections::{BTreeMap, BTreeSet};

use sindri_model::wire::StackOverview;
use sindri_model::{GeneratorId, StackId};

/// Names of generators, as far as they are needed.
pub(crate) type GeneratorNames = BTreeMap<GeneratorId, String>;

/// Name of each stack; with the name of its generator if stacks of several generators have the name.
pub(crate) struct StackNames {
    shown: BTreeMap<StackId, String>,
    /// Stacks whose names do not say which one is meant.
    ambiguous: BTreeSet<StackId>,
}

/// Returns the stacks whose names other generators have used too.
pub(crate) fn find_ambiguous(stacks: &[StackOverview]) -> BTreeSet<StackId> {
    let mut owners: BTreeMap<&str, BTreeSet<GeneratorId>> = BTreeMap::new();
    for stack in stacks {
        owners.entry(&stack.name).or_default().insert(stack.generator_id);
    }
    let is_shared = |stack: &&StackOverview| owners.get(stack.name.as_str()).is_some_and(|owners| owners.len() > 1);
    stacks.iter().filter(is_shared).map(|stack| stack.id).collect()
}

impl StackNames {
    pub(crate) fn new(stacks: &[StackOverview], generators: &GeneratorNames) -> Self {
        let ambiguous = find_ambiguous(stacks);
        let show = |stack: &StackOverview| {
            let owner = generators.get(&stack.generator_id).cloned().unwrap_or_else(|| stack.generator_id.to_string());
            match ambiguous.contains(&stack.id) {
                true => format!("{} of {owner}", stack.name),
                false => stack.name.clone(),
            }
        };
        Self { shown: stacks.iter().map(|stack| (stack.id, show(stack))).collect(), ambiguous }
    }

    /// Returns the name of a stack; `None` if it is not in the overview.
    pub(super) fn get(&self, stack: StackId) -> Option<&str> {
        self.shown.get(&stack).map(String::as_str)
    }

    /// Returns the name of a stack for people.
    pub(crate) fn show(&self, stack: &StackOverview) -> String {
        self.get(stack.id).unwrap_or(&stack.name).to_owned()
    }

    /// Returns what names exactly this stack in a command.
    pub(super) fn argument(&self, stack: &StackOverview) -> String {
        if self.ambiguous.contains(&stack.id) { stack.id.to_string() } else { stack.name.clone() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stack(number: u8, name: &str, generator: u8) -> StackOverview {
        let id = |number: u8| format!("20000000-0000-4000-8000-0000000000{number:02}");
        let document = json!({"id": id(number), "name": name, "generator_id": id(generator), "assignments": []});
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn only_names_of_several_generators_have_that_of_their_generator() {
        let stacks = [stack(1, "web", 8), stack(2, "web", 9), stack(3, "shop", 8), stack(4, "shop", 8)];
        let generators = BTreeMap::from([(stacks[0].generator_id, "ci".to_owned())]);
        let names = StackNames::new(&stacks, &generators);
        let shown: Vec<String> = stacks.iter().map(|stack| names.show(stack)).collect();
        assert_eq!(
            shown,
            ["web of ci".to_owned(), format!("web of {}", stacks[1].generator_id), "shop".into(), "shop".into()]
        );
        assert_eq!(
            (names.argument(&stacks[0]), names.argument(&stacks[2])),
            (stacks[0].id.to_string(), "shop".to_owned())
        );
    }
}
