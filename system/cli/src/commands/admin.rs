//! `sindri admin`: create, list and delete administrators, and replace their keys.

use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use sindri_client::Client;
use sindri_model::wire::{Admin, AdminRole, NewAdmin, RotatePakRequest};

use crate::failure::Failure;
use crate::names;
use crate::output::{print, print_or_fail};
use crate::table::format_table;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create an administrator and print its key, which cannot be printed again.
    Create {
        /// Name of the administrator.
        name: String,
        /// Let the key read everything and change nothing.
        #[arg(long)]
        read_only: bool,
        /// Time from which the key is invalid, such as 2027-01-31T12:00:00Z.
        #[arg(long, value_name = "TIME")]
        expires_at: Option<Timestamp>,
    },
    /// Replace the key of an administrator and print the new one, which cannot be printed again.
    RotateKey(RotateKey),
    /// Delete an administrator. Its key becomes invalid.
    Delete {
        /// Name or id of the administrator.
        admin: String,
    },
    /// List the administrators.
    List,
}

#[derive(Args)]
pub(crate) struct RotateKey {
    /// Name or id of the administrator; by default the one whose key is used.
    admin: Option<String>,
    /// Time for which the old key stays valid, such as 1h or 30m; by default it ends at once.
    #[arg(long, value_name = "DURATION")]
    keep_old_for: Option<SignedDuration>,
    /// Time from which the new key is invalid, such as 2027-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    expires_at: Option<Timestamp>,
}

pub(crate) async fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::Create { name, read_only, expires_at } => create(client, name, read_only, expires_at).await,
        Command::RotateKey(arguments) => rotate_key(client, &arguments).await,
        Command::Delete { admin } => delete(client, &admin).await,
        Command::List => list(client).await,
    }
}

async fn create(
    client: &Client,
    name: String,
    is_read_only: bool,
    key_expires_at: Option<Timestamp>,
) -> Result<(), Failure> {
    let role = if is_read_only { AdminRole::Reader } else { AdminRole::Admin };
    let created = client.create_admin(&NewAdmin { name, role, key_expires_at }).await?;
    let (admin, key) = (created.admin, created.pak);
    print_or_fail(&format!("administrator {} ({})\nkey, shown only once: {key}\n", admin.name, admin.id))
}

async fn rotate_key(client: &Client, arguments: &RotateKey) -> Result<(), Failure> {
    let grace = arguments.keep_old_for.map(|time| u32::try_from(time.as_secs())).transpose();
    let grace_seconds = grace.map_err(|_| Failure::Usage("--keep-old-for must not be negative".to_owned()))?;
    let request = RotatePakRequest { grace_seconds, key_expires_at: arguments.expires_at };
    let key = match &arguments.admin {
        Some(admin) => client.rotate_admin_key(names::find_admin(client, admin).await?.id, &request).await?.pak,
        None => client.rotate_own_admin_key(&request).await?,
    };
    print_or_fail(&format!("key, shown only once: {key}\n"))
}

async fn delete(client: &Client, admin: &str) -> Result<(), Failure> {
    let admin = names::find_admin(client, admin).await?;
    client.delete_admin(admin.id).await?;
    print(&format!("administrator {} is deleted\n", admin.name))
}

async fn list(client: &Client) -> Result<(), Failure> {
    let rows: Vec<_> = client.list_admins().await?.iter().map(format_row).collect();
    print(&format_table(["NAME", "ROLE", "KEY EXPIRES", "ID"], &rows))
}

fn format_row(admin: &Admin) -> [String; 4] {
    let expiry = admin.key_expires_at.map_or_else(|| "never".to_owned(), |time| time.to_string());
    [admin.name.clone(), admin.role.as_str().to_owned(), expiry, admin.id.to_string()]
}
