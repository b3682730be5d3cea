//! Lookup of administrators, agents, generators and stacks by name or id.

use sindri_client::Client;
use sindri_model::wire::{Admin, Agent, Generator, Stack};
use sindri_process::levenshtein_distance;

use crate::failure::Failure;

/// Finds the administrator with this name or id.
pub(crate) async fn find_admin(client: &Client, name: &str) -> Result<Admin, Failure> {
    find_one(client.list_admins().await?, "administrator", name, |admin| (&admin.name, admin.id.to_string()))
}

/// Finds the agent with this name or id.
pub(crate) async fn find_agent(client: &Client, name: &str) -> Result<Agent, Failure> {
    find_one(client.list_agents().await?, "agent", name, |agent| (&agent.name, agent.id.to_string()))
}

/// Finds the stack with this name or id.
pub(crate) async fn find_stack(client: &Client, name: &str) -> Result<Stack, Failure> {
    find_one(client.list_stacks().await?, "stack", name, |stack| (&stack.name, stack.id.to_string()))
}

/// Finds the generator with this name or id.
pub(crate) async fn find_generator(client: &Client, name: &str) -> Result<Generator, Failure> {
    find_one(client.list_generators().await?, "generator", name, |generator| {
        (&generator.name, generator.id.to_string())
    })
}

/// Returns the only candidate with this name or id.
fn find_one<T>(
    mut candidates: Vec<T>,
    noun: &str,
    name: &str,
    name_and_id: impl Fn(&T) -> (&String, String),
) -> Result<T, Failure> {
    let matches = |candidate: &T| {
        let (known, id) = name_and_id(candidate);
        known == name || id == name
    };
    let matching: Vec<usize> = (0..candidates.len()).filter(|index| matches(&candidates[*index])).collect();
    match matching[..] {
        [index] => Ok(candidates.swap_remove(index)),
        [] => {
            let suggestion = suggest(name, candidates.iter().map(|candidate| name_and_id(candidate).0.as_str()));
            Err(Failure::Usage(format!("there is no {noun} {name}{suggestion}")))
        }
        _ => Err(Failure::Usage(format!("several {noun}s have the name {name}: use the id instead"))),
    }
}

/// Returns `: did you mean …?` if a known name is similar to an unknown one, and otherwise an empty text.
pub(crate) fn suggest<'a>(unknown: &str, names: impl Iterator<Item = &'a str>) -> String {
    let distances = names.map(|name| (levenshtein_distance(unknown, name), name));
    let distance_max = (unknown.chars().count() / 3).max(1);
    let nearest = distances.filter(|(distance, _)| *distance <= distance_max).min();
    nearest.map_or_else(String::new, |(_, name)| format!(": did you mean {name}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_must_match_exactly_one_stack_and_an_unknown_one_suggests_the_nearest() {
        let candidates = || ["a", "b", "b", "checkout"].map(str::to_owned).into_iter().enumerate().collect::<Vec<_>>();
        let find = |wanted: &str| find_one(candidates(), "stack", wanted, |(id, name)| (name, format!("id-{id}")));
        assert_eq!(find("a").unwrap().1, "a");
        assert_eq!(find("id-2").unwrap().0, 2);
        assert_eq!(find("b").unwrap_err().to_string(), "several stacks have the name b: use the id instead");
        assert_eq!(find("other").unwrap_err().to_string(), "there is no stack other");
        assert_eq!(find("chekout").unwrap_err().to_string(), "there is no stack chekout: did you mean checkout?");
    }
}
