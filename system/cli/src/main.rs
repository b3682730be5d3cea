//! `sindri`: the command-line client for operators. It talks to the broker only.
//!
//! This file has the flags and the exit codes; each command has its own file.

mod commands;
mod failure;
mod file_lock;
mod names;
mod oidc;
mod output;
mod table;
mod token_file;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use http::HeaderValue;
use hyper_util::client::legacy::connect::HttpConnector;
use sindri_client::{Client, Trust, with_tls};
use sindri_process::{Setting, TraceExport, logs};
use sindri_traces::{RequestContext, SPANS, run_in_request};

use commands::{admin, agent, apply, approvals, events, login, stack, status, target};
use failure::Failure;
use token_file::TokenFile;

/// Deploys stacks to Kubernetes clusters and shows their status.
#[derive(Parser)]
#[command(name = "sindri", version)]
struct Flags {
    /// URL of the broker.
    #[arg(long, global = true, env = "SINDRI_BROKER", default_value = "http://127.0.0.1:3000", value_name = "URL")]
    broker: String,
    /// Certificate authorities in PEM for the broker's certificate, instead of those that this machine trusts.
    #[arg(long, global = true, env = "SINDRI_BROKER_CA_FILE", value_name = "FILE")]
    broker_ca_file: Option<PathBuf>,
    /// Access key.
    #[arg(long, global = true, env = "SINDRI_KEY", hide_env_values = true, value_name = "KEY")]
    key: Option<String>,
    /// File with the access key.
    #[arg(long, global = true, env = "SINDRI_KEY_FILE", value_name = "FILE", conflicts_with = "key")]
    key_file: Option<PathBuf>,
    /// File with the token of `sindri login`, which is used if there is no access key.
    #[arg(long, global = true, env = "SINDRI_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// URL of a collector to which the trace of this command is exported by OTLP over HTTP.
    #[arg(long, global = true, env = "SINDRI_OTLP_ENDPOINT", value_name = "URL")]
    otlp_endpoint: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Log in at an OpenID Connect provider, instead of using an access key.
    Login(login::Arguments),
    /// Delete the token of the login.
    Logout,
    /// Manage administrators and their keys.
    #[command(subcommand)]
    Admin(admin::Command),
    /// Manage agents, one per cluster.
    #[command(subcommand)]
    Agent(agent::Command),
    /// Manage stacks.
    #[command(subcommand)]
    Stack(stack::Command),
    /// Submit a file as the newest revision of a stack.
    Apply(apply::Arguments),
    /// Assign a stack to an agent.
    Target(target::Arguments),
    /// Remove a stack from an agent, which then removes its objects.
    Untarget(target::Arguments),
    /// Delete a stack; every agent that received it removes its objects.
    Delete {
        /// Name or id of the stack.
        stack: String,
    },
    /// Show the status of each stack on each agent.
    Status {
        /// Name or id of one stack, to show with its conditions on every cluster.
        stack: Option<String>,
    },
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
    let runtime = runtime.map_err(|error| Failure::Operation(format!("cannot start the runtime: {error}")))?;
    let traces = start_traces(&flags)?;
    let result = runtime.block_on(run_in_request(
        Some(new_request()),
        || tracing::trace_span!(target: SPANS, "sindri", otel.kind = "client"),
        async {
            match &flags.command {
                Command::Login(arguments) => login::run(arguments, &token_path(&flags)?).await,
                Command::Logout => login::log_out(&token_path(&flags)?).await,
                _ => execute(&create_client(&flags).await?, flags.command).await,
            }
        },
    ));
    traces.into_iter().for_each(TraceExport::end);
    result
}

/// Returns a request with a new id, which the log lines of the broker and of the agents have too.
fn new_request() -> RequestContext {
    let id = hex::encode(random_bytes());
    RequestContext { id: HeaderValue::try_from(id).expect("digits are valid in a header"), traceparent: None }
}

#[expect(clippy::disallowed_methods, reason = "the process owns entropy")]
fn random_bytes() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has entropy");
    bytes
}

/// Starts the export of the command's trace, if a collector is set.
fn start_traces(flags: &Flags) -> Result<Option<TraceExport>, Failure> {
    let Some(endpoint) = &flags.otlp_endpoint else { return Ok(None) };
    let to_usage = |reason: String| Failure::Usage(format!("--otlp-endpoint: {reason}"));
    Setting::otlp_endpoint("otlp_endpoint").check(endpoint).map_err(to_usage)?;
    let traces = TraceExport::start(endpoint, "sindri", env!("CARGO_PKG_VERSION"));
    let traces = traces.map_err(|error| Failure::Operation(error.to_string()))?;
    logs::init("off", "error", || None, Some(&traces));
    Ok(Some(traces))
}

async fn execute(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        // They need no broker.
        Command::Login(_) | Command::Logout => Ok(()),
        Command::Admin(command) => admin::run(client, command).await,
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

async fn create_client(flags: &Flags) -> Result<Client, Failure> {
    let to_usage = |_| Failure::Usage(format!("{:?} is not a URL", flags.broker));
    let base_url: http::Uri = flags.broker.parse().map_err(to_usage)?;
    let key = read_key(flags).await?;
    let mut connector = HttpConnector::new();
    // Disables Nagle's algorithm, which delays the last packet of a bundle until the previous ones are acknowledged.
    connector.set_nodelay(true);
    if base_url.scheme() != Some(&http::uri::Scheme::HTTPS) {
        return Ok(Client::new(connector, base_url, &key)?.with_strict_requests());
    }
    connector.enforce_http(false);
    Ok(Client::new(with_tls(connector, &load_trust(flags)?), base_url, &key)?.with_strict_requests())
}

/// Loads the trusted certificate authorities.
fn load_trust(flags: &Flags) -> Result<Trust, Failure> {
    let trust = match &flags.broker_ca_file {
        None => Trust::from_system(),
        Some(path) => {
            let to_usage = |error| {
                Failure::Usage(format!(
                    "the file of certificate authorities {} cannot be read: {error}",
                    path.display()
                ))
            };
            Trust::from_pem(&std::fs::read(path).map_err(to_usage)?)
        }
    };
    trust.map_err(|error| Failure::Usage(error.to_string()))
}

/// Returns the access key from the flags or the key file, or the token of the login.
async fn read_key(flags: &Flags) -> Result<String, Failure> {
    match (&flags.key, &flags.key_file) {
        (Some(key), _) => Ok(key.clone()),
        (None, Some(path)) => std::fs::read_to_string(path)
            .map_err(|error| Failure::Usage(format!("the key file {} cannot be read: {error}", path.display()))),
        (None, None) => {
            let path = token_path(flags)?;
            let missing = "an access key is required: set --key, --key-file or SINDRI_KEY, or use sindri login";
            let token = TokenFile::current_token(&path, now_seconds()).await?;
            token.ok_or_else(|| Failure::Usage(missing.to_owned()))
        }
    }
}

/// Returns the path of the file with the token of the login.
fn token_path(flags: &Flags) -> Result<PathBuf, Failure> {
    if let Some(path) = &flags.token_file {
        return Ok(path.clone());
    }
    let variable = |name: &str| std::env::vars_os().find(|(known, _)| known == name).map(|(_, value)| value);
    let base = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let base = base.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")));
    let missing = || Failure::Usage("an access key is required: set --key, --key-file or SINDRI_KEY".to_owned());
    base.map(|base| base.join("sindri").join("token.json")).ok_or_else(missing)
}

#[expect(clippy::disallowed_methods, reason = "the process owns the clock")]
fn now_seconds() -> i64 {
    jiff::Timestamp::now().as_second()
}
