//! `sindri audit`: the audit log, newest entries first.

use clap::Args;
use sindri_client::AuditQuery;

use crate::failure::Failure;
use crate::names;
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
    session.output.print_list(&session.client.list_audit_log(&query, usize::from(arguments.limit)).await?)
}
