//! `sindri-record`: records what an API server says, and compares it with what is kept.
//!
//! Here are the flags; the exit codes are those of [`sindri_cluster::program`].

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use sindri_cluster::program::{ExitReason, exit_code, print_line};
use sindri_cluster::{Home, LocalProvider, Provider, ProviderName, Signals, Stop, Version};
use sindri_record::compare::differences;
use sindri_record::files::{self, Files};
use sindri_record::library::scripts;
use sindri_record::session::Session;

/// As it calls itself.
const PROGRAM: &str = "sindri-record";

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
}

#[derive(Args)]
struct RecordFlags {
    /// What kind of cluster: local.
    #[arg(long, value_name = "KIND")]
    cluster: ProviderName,
    /// The version of Kubernetes.
    #[arg(long, value_name = "VERSION", default_value_t)]
    version: Version,
    /// Keep the files as they are, and print_line how they differ from what the server says now.
    #[arg(long)]
    check: bool,
    /// Only the exchanges with this text in their name, and no documents.
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    filter: String,
    /// The project's directory.
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
    let mut scripts = scripts(&flags.root).map_err(|error| ExitReason::Usage(error.to_string()))?;
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
    let found = session.record().map_err(|error| error.ending(stop))?;
    let directory = files::directory(&flags.root, &flags.version.to_string());
    let mut kept = files::read(&directory).map_err(|error| ExitReason::Failed(error.to_string()))?;
    if flags.check {
        if !documents {
            kept.retain(|name, _| found.contains_key(name));
        }
        return check(&kept, &found);
    }
    let count = found.len();
    let all = if documents { found } else { kept.into_iter().chain(found).collect() };
    files::write(&directory, &all).map_err(|error| ExitReason::Failed(error.to_string()))?;
    print_line(format!("{count} files are recorded in {}", directory.display()));
    Ok(())
}

fn check(kept: &Files, found: &Files) -> Result<(), ExitReason> {
    let differences = differences(kept, found);
    for difference in &differences {
        print_line(difference.file.clone());
        difference.lines.iter().for_each(|line| print_line(format!("    {line}")));
    }
    print_line(format!("{} files compared, {} differ", found.len(), differences.len()));
    if differences.is_empty() { Ok(()) } else { Err(ExitReason::AlreadyReported) }
}

/// Only a cluster that is fresh and nobody else's gives the same record twice.
fn provider(name: ProviderName) -> Result<Box<dyn Provider>, ExitReason> {
    match name {
        ProviderName::Local => Ok(Box::new(LocalProvider::new(Home::from_env()))),
        ProviderName::Sim | ProviderName::Container | ProviderName::Kind | ProviderName::Kubeconfig => {
            Err(ExitReason::Usage(format!("recordings are made with --cluster local, not {name}")))
        }
    }
}
