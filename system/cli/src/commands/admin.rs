//! `sindri admin`: create, list and delete administrators, and replace their keys.

use clap::{Args, Subcommand};
use jiff::Timestamp;
use sindri_model::wire::{AdminRole, NewAdmin};

use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::names;
use crate::new_key::{KeyDestination, Rotation};
use crate::session::Session;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the administrators.
    List,
    /// Create an administrator and print its key, which cannot be printed again.
    Create(Create),
    /// Replace the key of an administrator and print the new one, which cannot be printed again. The key that the command uses
    /// stays valid for ten minutes.
    RotateKey(RotateKey),
    /// Delete an administrator. Its key becomes invalid.
    Delete(Delete),
}

#[derive(Args)]
pub(crate) struct Create {
    /// Name of the administrator.
    name: String,
    /// Let the key read everything and change nothing.
    #[arg(long)]
    read_only: bool,
    /// Time from which the key is invalid, such as 2027-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    expires_at: Option<Timestamp>,
    #[command(flatten)]
    key: KeyDestination,
}

#[derive(Args)]
pub(crate) struct RotateKey {
    /// Name or id of the administrator; by default the one whose key is used.
    admin: Option<String>,
    #[command(flatten)]
    rotation: Rotation,
    #[command(flatten)]
    key: KeyDestination,
}

#[derive(Args)]
pub(crate) struct Delete {
    /// Name or id of the administrator.
    admin: String,
    #[command(flatten)]
    confirmation: Confirmation,
}

pub(crate) async fn run(session: &Session, command: Command) -> Result<(), Failure> {
    match command {
        Command::List => session.output.print_list(&session.client.list_admins().await?),
        Command::Create(arguments) => create(session, arguments).await,
        Command::RotateKey(arguments) => rotate_key(session, &arguments).await,
        Command::Delete(arguments) => delete(session, &arguments).await,
    }
}

async fn create(session: &Session, arguments: Create) -> Result<(), Failure> {
    let printer = arguments.key.prepare(session.output)?;
    let role = if arguments.read_only { AdminRole::Reader } else { AdminRole::Admin };
    let request = NewAdmin { name: arguments.name, role, key_expires_at: arguments.expires_at };
    let created = session.client.create_admin(&request).await?;
    let sentence = format!("administrator {} ({})", created.admin.name, created.admin.id);
    printer.print(&created.admin, &sentence, &created.pak)
}

async fn rotate_key(session: &Session, arguments: &RotateKey) -> Result<(), Failure> {
    let (client, rotation) = (&session.client, &arguments.rotation);
    let Some(name) = &arguments.admin else {
        let printer = arguments.key.prepare(session.output)?;
        let key = client.rotate_own_admin_key(&rotation.to_own_request()).await?;
        rotation.note_end();
        return printer.print_key(&key);
    };
    let admin = names::find_admin(client, name).await?;
    rotation.check_end(&format!("administrator {}", admin.name), admin.key_expires_at)?;
    let printer = arguments.key.prepare(session.output)?;
    let rotated = client.rotate_admin_key(admin.id, &rotation.to_request()).await?;
    rotation.note_end();
    printer.print(&rotated.admin, &format!("administrator {} has a new key", admin.name), &rotated.pak)
}

async fn delete(session: &Session, arguments: &Delete) -> Result<(), Failure> {
    let admin = names::find_admin(&session.client, &arguments.admin).await?;
    arguments.confirmation.ask(session, &format!("Delete administrator {}? Its key becomes invalid.", admin.name))?;
    session.client.delete_admin(admin.id).await?;
    session.output.print_change(&admin, &format!("administrator {} is deleted", admin.name))
}
