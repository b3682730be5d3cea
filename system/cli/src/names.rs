//! Lookup of administrators, agents and stacks by name or id.

use sindri_client::Client;
use sindri_model::wire::{Admin, Agent, Stack};

use crate::failure::Failure;

/// Finds the administrator with this name or id.
pub(crate) async fn find_admin(client: &Client, name: &str) -> Result<Admin, Failure> {
    let admins = client.list_admins().await?;
    find_one(admins, "administrator", name, |admin| admin.name == name || admin.id.to_string() == name)
}

/// Finds the agent with this name or id.
pub(crate) async fn find_agent(client: &Client, name: &str) -> Result<Agent, Failure> {
    let agents = client.list_agents().await?;
    find_one(agents, "agent", name, |agent| agent.name == name || agent.id.to_string() == name)
}

/// Finds the stack with this name or id.
pub(crate) async fn find_stack(client: &Client, name: &str) -> Result<Stack, Failure> {
    let stacks = client.list_stacks().await?;
    find_one(stacks, "stack", name, |stack| stack.name == name || stack.id.to_string() == name)
}

fn find_one<T>(candidates: Vec<T>, noun: &str, name: &str, matches: impl Fn(&T) -> bool) -> Result<T, Failure> {
    let mut matching = candidates.into_iter().filter(matches);
    match (matching.next(), matching.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => Err(Failure::Usage(format!("several {noun}s have the name {name}: use the id instead"))),
        (None, _) => Err(Failure::Usage(format!("there is no {noun} {name}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_must_match_exactly_one_stack() {
        let find = |wanted: &'static str| find_one(vec!["a", "b", "b"], "stack", wanted, move |name| *name == wanted);
        assert_eq!(find("a").unwrap(), "a");
        assert_eq!(find("b").unwrap_err().to_string(), "several stacks have the name b: use the id instead");
        assert_eq!(find("c").unwrap_err().to_string(), "there is no stack c");
    }
}
