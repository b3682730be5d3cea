//! `sindri`: what an operator types.
//!
//! Here are the flags and the exit codes; each command is a file of its own. It speaks to the broker only.

mod commands;
mod failure;
mod names;
mod output;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hyper_util::client::legacy::connect::HttpConnector;
use sindri_client::{Client, Trust, with_tls};

use commands::{agent, apply, approvals, events, stack, status, target};
use failure::Failure;

/// Declares what clusters run, and shows how they do.
#[derive(Parser)]
#[command(name = "sindri", version)]
struct Flags {
    /// The broker's address.
    #[arg(long, global = true, env = "SINDRI_BROKER", default_value = "http://127.0.0.1:3000", value_name = "URL")]
    broker: String,
    /// Authorities in PEM that may issue the broker's certificate, in place of those that the machine trusts.
    #[arg(long, global = true, env = "SINDRI_BROKER_CA_FILE", value_name = "FILE")]
    broker_ca_file: Option<PathBuf>,
    /// The key to show.
    #[arg(long, global = true, env = "SINDRI_KEY", hide_env_values = true, value_name = "KEY")]
    key: Option<String>,
    /// A file that holds the key.
    #[arg(long, global = true, env = "SINDRI_KEY_FILE", value_name = "FILE", conflicts_with = "key")]
    key_file: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Agents: one for each cluster.
    #[command(subcommand)]
    Agent(agent::Command),
    /// Stacks: what is deployed together.
    #[command(subcommand)]
    Stack(stack::Command),
    /// Submits a file as the newest revision of a stack.
    Apply(apply::Arguments),
    /// Sends a stack to an agent.
    Target(target::Arguments),
    /// Takes a stack away from an agent, which then removes it.
    Untarget(target::Arguments),
    /// Deletes a stack; every agent that received it removes it.
    Delete {
        /// The stack's name or id.
        stack: String,
    },
    /// Shows how each stack is on each agent.
    Status {
        /// Only this stack, with its conditions on every cluster: its name or id.
        stack: Option<String>,
    },
    /// Shows what agents hold back until somebody decides.
    Approvals(approvals::Arguments),
    /// Lets an agent carry out what it holds back.
    Approve {
        /// The id of the approval.
        id: String,
    },
    /// Keeps an agent from carrying out what it holds back.
    Reject {
        /// The id of the approval.
        id: String,
    },
    /// Shows what agents reported.
    Events {
        /// An agent or a stack, by name or id.
        subject: String,
    },
}

fn main() -> ExitCode {
    match run(Flags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("sindri: {failure}");
            failure.exit_code()
        }
    }
}

fn run(flags: Flags) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Elsewhere(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        let client = client(&flags)?;
        execute(&client, flags.command).await
    })
}

async fn execute(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::Agent(command) => agent::run(client, command).await,
        Command::Stack(command) => stack::run(client, command).await,
        Command::Apply(arguments) => apply::run(client, &arguments).await,
        Command::Target(arguments) => target::add(client, &arguments).await,
        Command::Untarget(arguments) => target::remove(client, &arguments).await,
        Command::Delete { stack } => stack::delete(client, &stack).await,
        Command::Status { stack } => status::run(client, stack.as_deref()).await,
        Command::Approvals(arguments) => approvals::list(client, &arguments).await,
        Command::Approve { id } => approvals::approve(client, &id).await,
        Command::Reject { id } => approvals::reject(client, &id).await,
        Command::Events { subject } => events::run(client, &subject).await,
    }
}

fn client(flags: &Flags) -> Result<Client, Failure> {
    let mistake = |_| Failure::Mistake(format!("{:?} is not an address", flags.broker));
    let base: http::Uri = flags.broker.parse().map_err(mistake)?;
    let mut connector = HttpConnector::new();
    // A bundle is longer than a packet: its end would otherwise wait until the broker confirms the beginning.
    connector.set_nodelay(true);
    if base.scheme() != Some(&http::uri::Scheme::HTTPS) {
        return Ok(Client::new(connector, base, &key(flags)?)?);
    }
    connector.enforce_http(false);
    Ok(Client::new(with_tls(connector, &trust(flags)?), base, &key(flags)?)?)
}

/// Whose certificates are believed.
fn trust(flags: &Flags) -> Result<Trust, Failure> {
    let trusted = match &flags.broker_ca_file {
        None => Trust::from_system(),
        Some(path) => {
            let unreadable = |error| Failure::Mistake(format!("the authorities {}: {error}", path.display()));
            Trust::from_pem(&std::fs::read(path).map_err(unreadable)?)
        }
    };
    trusted.map_err(|error| Failure::Mistake(error.to_string()))
}

fn key(flags: &Flags) -> Result<String, Failure> {
    match (&flags.key, &flags.key_file) {
        (Some(key), _) => Ok(key.clone()),
        (None, Some(path)) => std::fs::read_to_string(path)
            .map_err(|error| Failure::Mistake(format!("the key file {} cannot be read: {error}", path.display()))),
        (None, None) => Err(Failure::Mistake("a key is needed: --key, --key-file or SINDRI_KEY".to_owned())),
    }
}
