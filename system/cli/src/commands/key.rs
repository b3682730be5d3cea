//! `sindri key`: access keys without their secrets.

use clap::Subcommand;

use crate::failure::Failure;
use crate::session::Session;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the keys with their owners.
    List,
}

pub(crate) async fn run(session: &Session, command: &Command) -> Result<(), Failure> {
    match command {
        Command::List => session.output.print_list(&session.client.list_keys().await?),
    }
}
