//! `sindri-record`: records what an API server says, compares it with what is kept, and measures it.
//!
//! Here are the flags and the exit codes: 0 when everything went well, 1 for what failed or differs, 2 for a mistake of
//! the user, 3 for a kind of cluster that cannot run here, 128 and the number of the signal when one ended it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use sindri_cluster::{ClusterError, Home, Local, Provider, ProviderName, Signals, Stop, Version};
use sindri_figures::Sheet;
use sindri_record::compare::differences;
use sindri_record::figures;
use sindri_record::files::{self, Files};
use sindri_record::library::scripts;
use sindri_record::session::{Session, SessionError};

#[derive(Parser)]
#[command(name = "sindri-record", version, about = "Records what a Kubernetes API server says.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Records documents and exchanges.
    #[command(bin_name = "cargo xtask record")]
    Record(RecordFlags),
    /// Measures the real control plane.
    Bench {
        /// Write the figures as JSON.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
}

#[derive(Args)]
struct RecordFlags {
    /// What kind of cluster: local.
    #[arg(long, value_name = "KIND")]
    cluster: ProviderName,
    /// The version of Kubernetes.
    #[arg(long, value_name = "VERSION", default_value_t)]
    version: Version,
    /// Keep the files as they are, and say how they differ from what the server says now.
    #[arg(long)]
    check: bool,
    /// Only the exchanges with this text in their name, and no documents.
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    filter: String,
    /// The project's directory.
    #[arg(long, default_value = ".", value_name = "DIR")]
    root: PathBuf,
}

/// Why the program ends without success.
enum Failure {
    /// The user can put it right.
    Mistake(String),
    /// Something did not work as it should.
    Broken(String),
    /// What is kept is not what the server says; the lines said how.
    Differs,
    /// This machine has not what it takes.
    NotRun(String),
    /// A signal ended it.
    Interrupted,
}

const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 2;
const EXIT_NOT_RUN: u8 = 3;

fn main() -> ExitCode {
    let signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return fail(EXIT_FAILED, &format!("cannot start: {error}")),
    };
    let done = match Cli::parse().command {
        Command::Record(flags) => record(&flags, signals.stop()),
        Command::Bench { json } => bench(json.as_deref(), signals.stop()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Mistake(message)) => fail(EXIT_USAGE, &message),
        Err(Failure::Broken(message)) => fail(EXIT_FAILED, &message),
        Err(Failure::Differs) => ExitCode::from(EXIT_FAILED),
        Err(Failure::NotRun(message)) => fail(EXIT_NOT_RUN, &format!("not run: {message}")),
        Err(Failure::Interrupted) => fail(signals.stop().exit_code(), "interrupted; everything is ended"),
    }
}

fn record(flags: &RecordFlags, stop: &Stop) -> Result<(), Failure> {
    let mut scripts = scripts(&flags.root).map_err(|error| Failure::Mistake(error.to_string()))?;
    scripts.retain(|script| script.name.contains(&flags.filter));
    let documents = flags.filter.is_empty();
    if scripts.is_empty() {
        return Err(Failure::Mistake(format!("no exchange has {:?} in its name", flags.filter)));
    }
    let provider = provider(flags.cluster)?;
    let session =
        Session { provider: provider.as_ref(), version: flags.version, documents, scripts: &scripts, stop, say };
    let found = session.record()?;
    let directory = files::directory(&flags.root, &flags.version.to_string());
    let mut kept = files::read(&directory).map_err(|error| Failure::Broken(error.to_string()))?;
    if flags.check {
        if !documents {
            kept.retain(|name, _| found.contains_key(name));
        }
        return check(&kept, &found);
    }
    let count = found.len();
    let all = if documents { found } else { kept.into_iter().chain(found).collect() };
    files::write(&directory, &all).map_err(|error| Failure::Broken(error.to_string()))?;
    say(format!("{count} files are recorded in {}", directory.display()));
    Ok(())
}

fn check(kept: &Files, found: &Files) -> Result<(), Failure> {
    let differences = differences(kept, found);
    for difference in &differences {
        say(difference.file.clone());
        difference.lines.iter().for_each(|line| say(format!("    {line}")));
    }
    say(format!("{} files compared, {} differ", found.len(), differences.len()));
    if differences.is_empty() { Ok(()) } else { Err(Failure::Differs) }
}

fn bench(json: Option<&Path>, stop: &Stop) -> Result<(), Failure> {
    let mut sheet = Sheet::new(figures::AREA, say);
    figures::measure(&Local::new(Home::of_user()), stop, &mut sheet)?;
    if stop.is_set() {
        return Err(Failure::Interrupted);
    }
    let missing = sheet.missing();
    if let Some(file) = json {
        let unwritable = |error| Failure::Mistake(format!("{} cannot be written: {error}", file.display()));
        std::fs::write(file, format!("{:#}\n", sheet.to_json())).map_err(unwritable)?;
    }
    if missing == 0 { Ok(()) } else { Err(Failure::Broken(format!("{missing} figures could not be measured"))) }
}

/// Only a cluster that is fresh and nobody else's gives the same record twice.
fn provider(name: ProviderName) -> Result<Box<dyn Provider>, Failure> {
    match name {
        ProviderName::Local => Ok(Box::new(Local::new(Home::of_user()))),
        ProviderName::Sim | ProviderName::Container | ProviderName::Kind | ProviderName::Kubeconfig => {
            Err(Failure::Mistake(format!("recordings are made with --cluster local, not {name}")))
        }
    }
}

/// Prints a line. Whoever stopped reading, as `head` does, does not stop the work.
fn say(line: String) {
    let _unread = writeln!(std::io::stdout(), "{line}");
}

fn fail(code: u8, message: &str) -> ExitCode {
    eprintln!("sindri-record: {message}");
    ExitCode::from(code)
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Cluster(ClusterError::Interrupted) => Self::Interrupted,
            SessionError::Cluster(ClusterError::Mistake(message)) => Self::Mistake(message),
            SessionError::Cluster(error @ ClusterError::Unavailable { .. }) => Self::NotRun(error.to_string()),
            SessionError::Cluster(error @ ClusterError::Failed(_)) => Self::Broken(error.to_string()),
            SessionError::Target(_) | SessionError::Runtime(_) | SessionError::Records(_) => {
                Self::Broken(error.to_string())
            }
        }
    }
}
