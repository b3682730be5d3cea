//! `sindri-record`: records an API server, or compares it with the stored recording.
//!
//! Here are the flags; the exit codes are those of [`sindri_cluster::program`].

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use sindri_cluster::program::{ExitReason, exit_code, print_line};
use sindri_cluster::{Home, LocalProvider, Provider, ProviderName, Signals, Stop, Version};
use sindri_record::compare::differences;
use sindri_record::files::{self, Files};
use sindri_record::library::read_scripts;
use sindri_record::session::Session;

/// Name in error messages.
const PROGRAM: &str = "sindri-record";

#[derive(Parser)]
#[command(name = "sindri-record", version, about = "Records the responses of a Kubernetes API server.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Records documents and exchanges.
    #[command(bin_name = "cargo xtask record")]
    Record(RecordFlags),
}

#[derive(Args)]
struct RecordFlags {
    /// Provider of clusters: local.
    #[arg(long, value_name = "PROVIDER")]
    cluster: ProviderName,
    /// Version of Kubernetes.
    #[arg(long, value_name = "VERSION", default_value_t)]
    version: Version,
    /// Change no file, and print the differences between the stored recording and a new one.
    #[arg(long)]
    check: bool,
    /// Only the exchanges with this text in their name, without the documents.
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    filter: String,
    /// Directory of the project.
    #[arg(long, default_value = ".", value_name = "DIR")]
    root: PathBuf,
}

fn main() -> ExitCode {
    let signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return exit_code(PROGRAM, Err(ExitReason::Failed(format!("cannot start: {error}")))),
    };
    let done = match Cli::parse().command {
        Command::Record(flags) => record(&flags, signals.stop()),
    };
    exit_code(PROGRAM, done)
}

fn record(flags: &RecordFlags, stop: &Stop) -> Result<(), ExitReason> {
    let mut scripts = read_scripts(&flags.root).map_err(|error| ExitReason::Usage(error.to_string()))?;
    scripts.retain(|script| script.name.contains(&flags.filter));
    let documents = flags.filter.is_empty();
    if scripts.is_empty() {
        return Err(ExitReason::Usage(format!("no exchange has {:?} in its name", flags.filter)));
    }
    let provider = provider(flags.cluster)?;
    let session = Session {
        provider: provider.as_ref(),
        version: flags.version,
        documents,
        scripts: &scripts,
        stop,
        report: print_line,
    };
    let recorded = session.record().map_err(|error| error.to_exit_reason(stop))?;
    let directory = files::directory(&flags.root, &flags.version.to_string());
    let mut stored = files::read(&directory).map_err(|error| ExitReason::Failed(error.to_string()))?;
    if flags.check {
        if !documents {
            stored.retain(|name, _| recorded.contains_key(name));
        }
        return check(&stored, &recorded);
    }
    let count = recorded.len();
    let all = if documents { recorded } else { stored.into_iter().chain(recorded).collect() };
    files::write(&directory, &all).map_err(|error| ExitReason::Failed(error.to_string()))?;
    print_line(format!("{count} files were written to {}", directory.display()));
    Ok(())
}

fn check(stored: &Files, recorded: &Files) -> Result<(), ExitReason> {
    let differences = differences(stored, recorded);
    for difference in &differences {
        print_line(difference.file.clone());
        difference.lines.iter().for_each(|line| print_line(format!("    {line}")));
    }
    print_line(format!("{} files compared, {} differ", recorded.len(), differences.len()));
    if differences.is_empty() { Ok(()) } else { Err(ExitReason::AlreadyReported) }
}

/// Returns the provider. Only a new cluster without other users gives the same recording twice.
fn provider(name: ProviderName) -> Result<Box<dyn Provider>, ExitReason> {
    match name {
        ProviderName::Local => Ok(Box::new(LocalProvider::new(Home::from_env()))),
        ProviderName::Sim | ProviderName::Container | ProviderName::Kind | ProviderName::Kubeconfig => {
            Err(ExitReason::Usage(format!("recordings are made with --cluster local, not {name}")))
        }
    }
}
