//! `sindri whoami`: the owner of the key, and the broker.

use serde::Serialize;

use crate::failure::Failure;
use crate::output::{Cell, Column, Resource};
use crate::session::Session;

/// Owner of the key.
#[derive(Serialize)]
struct Identity {
    /// `administrator`, `reader`, `agent` or `generator`.
    role: &'static str,
    /// Name of the agent or generator. The broker does not tell that of an administrator.
    name: Option<String>,
    id: Option<String>,
    broker: String,
    context: Option<String>,
}

impl Resource for Identity {
    const KIND: &'static str = "identity";

    fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.role.to_owned())
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("ROLE", |identity: &Self| Cell::text(identity.role)),
            Column::new("NAME", |identity: &Self| Cell::optional(identity.name.as_ref())),
            Column::new("ID", |identity: &Self| Cell::optional(identity.id.as_ref())),
            Column::new("BROKER", |identity: &Self| Cell::text(&identity.broker)),
            Column::new("CONTEXT", |identity: &Self| Cell::optional(identity.context.as_ref())),
        ]
    }
}

pub(crate) async fn run(session: &Session) -> Result<(), Failure> {
    let client = &session.client;
    let owner = client.whoami().await?;
    let (role, name, id) = match (owner.agent, owner.generator) {
        (Some(agent), _) => ("agent", Some(client.get_agent(agent).await?.name), Some(agent.to_string())),
        (None, Some(generator)) => {
            ("generator", Some(client.get_generator(generator).await?.name), Some(generator.to_string()))
        }
        (None, None) if owner.readonly => ("reader", None, None),
        (None, None) => ("administrator", None, None),
    };
    let (broker, context) = (session.broker.clone(), session.context.clone());
    session.output.print_object(&Identity { role, name, id, broker, context })
}
