//! The commands, and the place of each.

use clap::Subcommand;

use crate::commands::{
    admin, agent, apply, approvals, audit, completion, context, events, generator, key, login, stack, status, target,
    version, webhook, whoami,
};
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
    /// Manage generators, the clients that own stacks.
    #[command(subcommand)]
    Generator(generator::Command),
    /// Manage webhooks.
    #[command(subcommand)]
    Webhook(webhook::Command),
    /// Manage administrators and their keys.
    #[command(subcommand)]
    Admin(admin::Command),
    /// List access keys.
    #[command(subcommand)]
    Key(key::Command),
    /// Show the audit log, newest entries first.
    Audit(audit::Arguments),
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
    /// Show the versions of this program and of the broker.
    Version(version::Arguments),
    /// Print the completion script of a shell.
    Completion(completion::CompletionArguments),
    /// Write the manual pages to a directory.
    #[command(hide = true)]
    Man(completion::ManArguments),
}

/// Surroundings of a command.
pub(crate) struct Invocation<'a> {
    pub flags: &'a Flags,
    pub store: Option<&'a ContextStore>,
    pub output: Output,
    /// Describes the whole command line.
    pub describe: fn() -> clap::Command,
}

impl Command {
    /// Runs the command.
    pub(crate) async fn run(self, invocation: &Invocation<'_>) -> Result<(), Failure> {
        match self {
            Self::Broker(command) => {
                let settings = invocation.select_settings()?;
                let client = create_client(&settings, invocation.output.now.as_second()).await?;
                let Settings { broker, context, .. } = settings;
                command.run(&Session { client, broker, context, output: invocation.output }).await
            }
            Self::Local(command) => command.run(invocation).await,
        }
    }
}

impl Invocation<'_> {
    fn select_settings(&self) -> Result<Settings, Failure> {
        Settings::select(self.flags, self.store)
    }
}

impl LocalCommand {
    async fn run(self, invocation: &Invocation<'_>) -> Result<(), Failure> {
        let Invocation { flags, store, output, describe } = *invocation;
        match self {
            Self::Login(arguments) => login::run(&arguments, &token_path(&invocation.select_settings()?)?).await,
            Self::Logout => login::log_out(&token_path(&invocation.select_settings()?)?).await,
            Self::Context(command) => context::run(command, flags, store, output).await,
            Self::Version(arguments) => version::run(&arguments, &invocation.select_settings()?, output).await,
            Self::Completion(arguments) => completion::print_script(&arguments, describe()),
            Self::Man(arguments) => completion::write_pages(&arguments, describe()),
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
            Self::Generator(command) => generator::run(session, command).await,
            Self::Webhook(command) => webhook::run(session, command).await,
            Self::Key(command) => key::run(session, &command).await,
            Self::Audit(arguments) => audit::run(session, &arguments).await,
            Self::Whoami => whoami::run(session).await,
        }
    }
}
