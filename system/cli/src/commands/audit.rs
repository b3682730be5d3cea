//! `sindri audit`: the audit log, newest entries first.

use std::collections::BTreeMap;
use std::sync::Arc;

use clap::Args;
use sindri_client::AuditQuery;

use crate::failure::Failure;
use crate::names;
use crate::resources::AuditRow;
use crate::session::Session;
use crate::since::Since;

/// Types of actors.
const ACTOR_TYPES: [&str; 4] = ["admin", "agent", "generator", "system"];

#[derive(Args)]
pub(crate) struct Arguments {
    /// Action, such as stack.deleted; a trailing `*` matches any ending.
    #[arg(long)]
    action: Option<String>,
    /// Name or id of the administrator, agent or generator that acted.
    #[arg(long)]
    actor: Option<String>,
    /// Type of the actor.
    #[arg(long, value_name = "TYPE", value_parser = ACTOR_TYPES)]
    actor_type: Option<String>,
    /// Only entries since then: a duration such as 2h, or a time.
    #[arg(long, value_name = "TIME")]
    since: Option<Since>,
    /// Maximum number of entries, at most 1000.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

pub(crate) async fn run(session: &Session, arguments: &Arguments) -> Result<(), Failure> {
    let mut query = AuditQuery {
        action: arguments.action.clone(),
        from: arguments.since.map(|since| since.to_time(session.output.now)),
        ..AuditQuery::default()
    };
    query.actor_type.clone_from(&arguments.actor_type);
    if let Some(name) = &arguments.actor {
        query.actor_id = Some(names::find_actor(&session.client, name).await?);
    }
    let entries = session.client.list_audit_log(&query, usize::from(arguments.limit)).await?;
    let names = match session.output.format.is_for_people() && !entries.is_empty() {
        // Without them the entries have ids.
        true => Arc::new(load_names(session).await.unwrap_or_default()),
        false => Arc::default(),
    };
    let rows: Vec<AuditRow> = entries.into_iter().map(|entry| AuditRow { entry, names: names.clone() }).collect();
    session.output.print_list(&rows)
}

/// Loads the names of everything that exists, by id. Records that were deleted keep their ids.
async fn load_names(session: &Session) -> Result<BTreeMap<String, String>, Failure> {
    let client = &session.client;
    let (admins, agents) = (client.list_admins().await?, client.list_agents().await?);
    let (generators, stacks) = (client.list_generators().await?, client.list_stacks().await?);
    let admins = admins.into_iter().map(|admin| (admin.id.to_string(), admin.name));
    let agents = agents.into_iter().map(|agent| (agent.id.to_string(), agent.name));
    let generators = generators.into_iter().map(|generator| (generator.id.to_string(), generator.name));
    let stacks = stacks.into_iter().map(|stack| (stack.id.to_string(), stack.name));
    Ok(admins.chain(agents).chain(generators).chain(stacks).collect())
}
