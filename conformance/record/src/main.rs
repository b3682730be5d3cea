//! `sindri-record`: records what an API server says, and compares it with what is kept.
//!
//! Here are the flags; the exit codes are those of [`sindri_cluster::program`].

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use sindri_cluster::program::{Ending, end, say};
use sindri_cluster::{Home, Local, Provider, ProviderName, Signals, Stop, Version};
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

fn main() -> ExitCode {
    let signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return end(PROGRAM, Err(Ending::Broken(format!("cannot start: {error}")))),
    };
    let done = match Cli::parse().command {
        Command::Record(flags) => record(&flags, signals.stop()),
    };
    end(PROGRAM, done)
}

fn record(flags: &RecordFlags, stop: &Stop) -> Result<(), Ending> {
    let mut scripts = scripts(&flags.root).map_err(|error| Ending::Mistake(error.to_string()))?;
    scripts.retain(|script| script.name.contains(&flags.filter));
    let documents = flags.filter.is_empty();
    if scripts.is_empty() {
        return Err(Ending::Mistake(format!("no exchange has {:?} in its name", flags.filter)));
    }
    let provider = provider(flags.cluster)?;
    let session =
        Session { provider: provider.as_ref(), version: flags.version, documents, scripts: &scripts, stop, say };
    let found = session.record().map_err(|error| error.ending(stop))?;
    let directory = files::directory(&flags.root, &flags.version.to_string());
    let mut kept = files::read(&directory).map_err(|error| Ending::Broken(error.to_string()))?;
    if flags.check {
        if !documents {
            kept.retain(|name, _| found.contains_key(name));
        }
        return check(&kept, &found);
    }
    let count = found.len();
    let all = if documents { found } else { kept.into_iter().chain(found).collect() };
    files::write(&directory, &all).map_err(|error| Ending::Broken(error.to_string()))?;
    say(format!("{count} files are recorded in {}", directory.display()));
    Ok(())
}

fn check(kept: &Files, found: &Files) -> Result<(), Ending> {
    let differences = differences(kept, found);
    for difference in &differences {
        say(difference.file.clone());
        difference.lines.iter().for_each(|line| say(format!("    {line}")));
    }
    say(format!("{} files compared, {} differ", found.len(), differences.len()));
    if differences.is_empty() { Ok(()) } else { Err(Ending::Told) }
}

/// Only a cluster that is fresh and nobody else's gives the same record twice.
fn provider(name: ProviderName) -> Result<Box<dyn Provider>, Ending> {
    match name {
        ProviderName::Local => Ok(Box::new(Local::new(Home::of_user()))),
        ProviderName::Sim | ProviderName::Container | ProviderName::Kind | ProviderName::Kubeconfig => {
            Err(Ending::Mistake(format!("recordings are made with --cluster local, not {name}")))
        }
    }
}
