//! Lookup of administrators, agents, generators, stacks and webhooks by name or id.

use http::StatusCode;
use sindri_client::Client;
use sindri_model::wire::{Admin, Agent, Generator, Stack, WebhookResponse};
use sindri_process::levenshtein_distance;

use crate::failure::Failure;

/// Noun for who acts, and the commands that list them.
const ACTOR: (&str, &str) =
    ("administrator, agent or generator", "sindri admin list, sindri agent list or sindri generator list");

/// Finds the administrator with this name or id.
pub(crate) async fn find_admin(client: &Client, name: &str) -> Result<Admin, Failure> {
    find_one(client.list_admins().await?, ("administrator", "sindri admin list"), name, |admin| {
        (&admin.name, admin.id.to_string())
    })
}

/// Finds the agent with this name or id.
pub(crate) async fn find_agent(client: &Client, name: &str) -> Result<Agent, Failure> {
    find_one(list_agents(client).await?, ("agent", "sindri agent list"), name, |agent| {
        (&agent.name, agent.id.to_string())
    })
}

/// Lists the agents that the key may read: all, or for the key of an agent this one.
pub(crate) async fn list_agents(client: &Client) -> Result<Vec<Agent>, Failure> {
    match client.list_agents().await {
        Err(error) if error.status() == Some(StatusCode::FORBIDDEN) => match client.whoami().await?.agent {
            Some(own) => Ok(vec![client.get_agent(own).await?]),
            None => Err(error.into()),
        },
        other => Ok(other?),
    }
}

/// Finds the stack with this name or id.
pub(crate) async fn find_stack(client: &Client, name: &str) -> Result<Stack, Failure> {
    find_one(client.list_stacks().await?, ("stack", "sindri stack list"), name, |stack| {
        (&stack.name, stack.id.to_string())
    })
}

/// Finds the generator with this name or id.
pub(crate) async fn find_generator(client: &Client, name: &str) -> Result<Generator, Failure> {
    find_one(list_generators(client).await?, ("generator", "sindri generator list"), name, |generator| {
        (&generator.name, generator.id.to_string())
    })
}

/// Lists the generators that the key may read: all, or for the key of a generator this one.
pub(crate) async fn list_generators(client: &Client) -> Result<Vec<Generator>, Failure> {
    match client.list_generators().await {
        Err(error) if error.status() == Some(StatusCode::FORBIDDEN) => match client.whoami().await?.generator {
            Some(own) => Ok(vec![client.get_generator(own).await?]),
            None => Err(error.into()),
        },
        other => Ok(other?),
    }
}

/// Finds the webhook with this name or id.
pub(crate) async fn find_webhook(client: &Client, name: &str) -> Result<WebhookResponse, Failure> {
    find_one(client.list_webhooks().await?, ("webhook", "sindri webhook list"), name, |webhook| {
        (&webhook.name, webhook.id.to_string())
    })
}

/// Finds the id of the administrator, agent or generator with this name or id.
pub(crate) async fn find_actor(client: &Client, name: &str) -> Result<String, Failure> {
    let admins = client.list_admins().await?.into_iter().map(|admin| (admin.name, admin.id.to_string()));
    let agents = client.list_agents().await?.into_iter().map(|agent| (agent.name, agent.id.to_string()));
    let generators =
        client.list_generators().await?.into_iter().map(|generator| (generator.name, generator.id.to_string()));
    let actors = admins.chain(agents).chain(generators).collect();
    Ok(find_one(actors, ACTOR, name, |(name, id)| (name, id.clone()))?.1)
}

/// Returns the only candidate with this name or id.
fn find_one<T>(
    mut candidates: Vec<T>,
    (noun, list_commands): (&str, &str),
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
            let names = candidates.iter().map(|candidate| name_and_id(candidate).0.as_str());
            Err(unknown_name(noun, name, names, list_commands))
        }
        ref several => {
            let ids: Vec<String> = several.iter().map(|index| name_and_id(&candidates[*index]).1).collect();
            let ids = ids.join(", ");
            Err(Failure::Usage(format!("more than one {noun} has the name {name}: use the id instead, one of {ids}")))
        }
    }
}

/// Makes the error for a name that is not among the known ones: it suggests the nearest, or says which commands list them.
pub(crate) fn unknown_name<'a>(
    noun: &str,
    name: &str,
    names: impl Iterator<Item = &'a str>,
    list_commands: &str,
) -> Failure {
    let suggestion = suggest(name, names);
    let advice = suggestion.is_empty().then(|| format!("see the names that the key may read with {list_commands}"));
    Failure::UnknownName { message: format!("there is no {noun} {name}{suggestion}"), advice }
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
        let find = |wanted: &str| {
            find_one(candidates(), ("stack", "sindri stack list"), wanted, |(id, name)| (name, format!("id-{id}")))
        };
        assert_eq!(find("a").unwrap().1, "a");
        assert_eq!(find("id-2").unwrap().0, 2);
        assert_eq!(
            find("b").unwrap_err().to_string(),
            "more than one stack has the name b: use the id instead, one of id-1, id-2"
        );
        assert_eq!(find("other").unwrap_err().to_string(), "there is no stack other");
        assert_eq!(find("chekout").unwrap_err().to_string(), "there is no stack chekout: did you mean checkout?");
    }
}
