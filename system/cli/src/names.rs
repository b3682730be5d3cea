//! Names or ids: both are accepted everywhere.

use sindri_client::Client;
use sindri_model::wire::{Agent, Stack};

use crate::failure::Failure;

/// The one agent that is meant.
pub(crate) async fn agent(client: &Client, wanted: &str) -> Result<Agent, Failure> {
    let agents = client.agents().await?;
    the_one(agents, "agent", wanted, |agent| agent.name == wanted || agent.id.to_string() == wanted)
}

/// The one stack that is meant.
pub(crate) async fn stack(client: &Client, wanted: &str) -> Result<Stack, Failure> {
    let stacks = client.stacks().await?;
    the_one(stacks, "stack", wanted, |stack| stack.name == wanted || stack.id.to_string() == wanted)
}

fn the_one<T>(all: Vec<T>, noun: &str, wanted: &str, is_meant: impl Fn(&T) -> bool) -> Result<T, Failure> {
    let mut meant = all.into_iter().filter(is_meant);
    match (meant.next(), meant.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => Err(Failure::Mistake(format!("several are called {wanted}: say which {noun} by its id"))),
        (None, _) => Err(Failure::Mistake(format!("there is no {noun} {wanted}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_must_mean_exactly_one() {
        let pick = |wanted: &'static str| the_one(vec!["a", "b", "b"], "stack", wanted, move |name| *name == wanted);
        assert_eq!(pick("a").unwrap(), "a");
        assert_eq!(pick("b").unwrap_err().to_string(), "several are called b: say which stack by its id");
        assert_eq!(pick("c").unwrap_err().to_string(), "there is no stack c");
    }
}
