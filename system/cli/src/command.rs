//! The commands, and the place of each.

use clap::Subcommand;

use crate::commands::{admin, agent, apply, approvals, context, events, login, stack, status, target, whoami};
use crate::connect::{create_client, token_path};
use crate::contexts::ContextStore;
use crate::failure::Failure;
use crate::flags::Flags;
use crate::output::Output;
use crate::session::Session;
use crate::settings::Settings;

/// A command.
#[derive(Subcommand)]
pub(crate) enum Command {
    #[command(flatten)]
    Broker(BrokerCommand),
    #[command(flatten)]
    Local(LocalCommand),
}

/// A command that sends requests to the broker.
#[derive(Subcommand)]
pub(crate) enum BrokerCommand {
    /// Show the status of each stack on each agent.
    Status {
        /// Name or id of one stack, to show with its conditions on every cluster.
        stack: Option<String>,
    },
    /// Submit a file as the newest revision of a stack.
    Apply(apply::Arguments),
    /// Assign a stack to an agent.
    Target(target::Arguments),
    /// Remove a stack from an agent, which then removes its objects.
    Untarget(target::Arguments),
    /// Delete a stack; every agent that received it removes its objects.
    Delete(stack::Delete),
    /// Show plans that agents hold until they are approved or rejected.
    Approvals(approvals::Arguments),
    /// Permit an agent to execute a held plan.
    Approve {
        /// Id of the approval.
        id: String,
    },
    /// Forbid an agent to execute a held plan.
    Reject {
        /// Id of the approval.
        id: String,
    },
    /// Show the events that agents reported.
    Events {
        /// Name or id of an agent or a stack.
        subject: String,
    },
    /// Manage agents, one per cluster.
    #[command(subcommand)]
    Agent(agent::Command),
    /// Manage stacks.
    #[command(subcommand)]
    Stack(stack::Command),
    /// Manage administrators and their keys.
    #[command(subcommand)]
    Admin(admin::Command),
    /// Show the owner of the key, and the broker.
    Whoami,
}

/// A command for the files of this machine.
#[derive(Subcommand)]
pub(crate) enum LocalCommand {
    /// Log in at an OpenID Connect provider, instead of using an access key.
    Login(login::Arguments),
    /// Delete the token of the login.
    Logout,
    /// Manage contexts: brokers with their keys.
    #[command(subcommand)]
    Context(context::Command),
}

impl Command {
    /// Runs the command.
    pub(crate) async fn run(self, flags: &Flags, store: Option<&ContextStore>, output: Output) -> Result<(), Failure> {
        match self {
            Self::Local(LocalCommand::Context(command)) => context::run(command, flags, store, output).await,
            Self::Local(LocalCommand::Login(arguments)) => {
                login::run(&arguments, &token_path(&Settings::select(flags, store)?)?).await
            }
            Self::Local(LocalCommand::Logout) => login::log_out(&token_path(&Settings::select(flags, store)?)?).await,
            Self::Broker(command) => {
                let settings = Settings::select(flags, store)?;
                let client = create_client(&settings, output.now.as_second()).await?;
                let Settings { broker, context, .. } = settings;
                command.run(&Session { client, broker, context, output }).await
            }
        }
    }
}

impl BrokerCommand {
    async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Status { stack } => status::run(session, stack.as_deref()).await,
            Self::Apply(arguments) => apply::run(session, &arguments).await,
            Self::Target(arguments) => target::add(session, &arguments).await,
            Self::Untarget(arguments) => target::remove(session, &arguments).await,
            Self::Delete(arguments) => stack::delete(session, &arguments).await,
            Self::Approvals(arguments) => approvals::list(session, &arguments).await,
            Self::Approve { id } => approvals::approve(session, &id).await,
            Self::Reject { id } => approvals::reject(session, &id).await,
            Self::Events { subject } => events::run(session, &subject).await,
            Self::Agent(command) => agent::run(session, command).await,
            Self::Stack(command) => stack::run(session, command).await,
            Self::Admin(command) => admin::run(session, command).await,
            Self::Whoami => whoami::run(session).await,
        }
    }
}
