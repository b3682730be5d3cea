//! The commands, and the place of each.

use clap::Subcommand;
use jiff::Timestamp;

use crate::commands::decision::{self, Decision};
use crate::commands::{
    admin, agent, apply, approvals, audit, completion, context, diff, events, generator, history, key, login, rollback,
    stack, status, target, version, webhook, whoami,
};
use crate::connect::{create_client, token_path};
use crate::contexts::ContextStore;
use crate::failure::Failure;
use crate::flags::Flags;
use crate::output::Output;
use crate::session::{Login, Session};
use crate::settings::{Credential, Settings};

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
    /// Show the state of each stack on each cluster, and the causes.
    Status(status::Arguments),
    /// Submit files as the newest revision of a stack.
    Apply(apply::Arguments),
    /// Show what files would change on each cluster of a stack, without submitting them.
    Diff(diff::Arguments),
    /// List the revisions of a stack, newest first.
    History(history::Arguments),
    /// Submit the content of an earlier revision again.
    Rollback(rollback::Arguments),
    /// Assign a stack to an agent.
    Target(target::Arguments),
    /// Remove a stack from an agent, which then removes its objects.
    Untarget(target::Remove),
    /// Delete a stack; every agent that received it removes its objects.
    Delete(stack::Delete),
    /// Show plans that agents hold until they are approved or rejected.
    Approvals(approvals::Arguments),
    /// Permit agents to execute held plans, after showing them.
    Approve(decision::Arguments),
    /// Forbid agents to execute held plans, after showing them.
    Reject(decision::Arguments),
    /// Show the events that agents reported, newest first.
    Events(events::Arguments),
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
    pub clock: fn() -> Timestamp,
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
                let path = settings.token_file.filter(|_| matches!(settings.credential, Credential::Login));
                let login = path.map(|path| Login { path, clock: invocation.clock });
                let (broker, context) = (settings.broker, settings.context);
                command.run(&Session { client, broker, context, output: invocation.output, login }).await
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
        let Invocation { flags, store, output, describe, clock: _ } = *invocation;
        match self {
            Self::Login(arguments) => {
                let settings = invocation.select_settings()?;
                login::run(&arguments, &settings.broker, &token_path(&settings)?).await
            }
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
            Self::Status(arguments) => status::run(session, &arguments).await,
            Self::Apply(arguments) => apply::run(session, &arguments).await,
            Self::Diff(arguments) => diff::run(session, &arguments).await,
            Self::History(arguments) => history::run(session, &arguments).await,
            Self::Rollback(arguments) => rollback::run(session, &arguments).await,
            Self::Target(arguments) => target::add(session, &arguments).await,
            Self::Untarget(arguments) => target::remove(session, &arguments).await,
            Self::Delete(arguments) => stack::delete(session, &arguments).await,
            Self::Approvals(arguments) => approvals::list(session, &arguments).await,
            Self::Approve(arguments) => decision::run(session, &arguments, Decision::Approve).await,
            Self::Reject(arguments) => decision::run(session, &arguments, Decision::Reject).await,
            Self::Events(arguments) => events::run(session, &arguments).await,
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
