//! `sindri`: the command-line client for operators. It talks to the broker only.
//!
//! This file connects flags, contexts and commands; each command has its own file.

mod advice;
mod arguments;
mod command;
mod commands;
mod confirm;
mod connect;
mod contexts;
mod duration;
mod environment;
mod exit;
mod failure;
mod file_lock;
mod flags;
mod names;
mod new_key;
mod oidc;
mod output;
mod private_file;
#[cfg(test)]
mod reference;
mod resources;
mod secret_input;
mod session;
mod settings;
mod since;
mod status;
mod submission;
mod token_file;
mod traces;
mod wait;

use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches};
use jiff::Timestamp;
use sindri_model::text::to_printable;
use sindri_process::TraceExport;
use sindri_traces::{SPANS, run_in_request};

use arguments::Arguments;
use command::Invocation;
use contexts::ContextStore;
use environment::Environment;
use exit::Exit;
use failure::Failure;
use output::{Output, Terminal, note};

fn main() -> ExitCode {
    let matches = Arguments::command().get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match run(arguments, &matches) {
        Ok(()) => Exit::Success.into(),
        Err(failure) => {
            note(&format!("sindri: {}", failure.to_shown()));
            if let Some(advice) = failure.advice() {
                note(&format!("next: {}", to_printable(&advice)));
            }
            failure.exit().into()
        }
    }
}

fn run(Arguments { flags, command }: Arguments, matches: &ArgMatches) -> Result<(), Failure> {
    let environment = Environment::read();
    let flags = flags.resolve(matches, &environment)?;
    let store = environment.config_directory().map(ContextStore::new);
    let terminal = Terminal::detect(&std::io::stdout(), &environment);
    let error_terminal = Terminal::detect(&std::io::stderr(), &environment);
    let output = Output { format: flags.output, terminal, error_terminal, now: now() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Operation(format!("cannot start the runtime: {error}")))?;
    let traces = traces::start_traces(flags.otlp_endpoint.as_deref())?;
    let result = runtime.block_on(run_in_request(
        Some(traces::new_request()),
        || tracing::trace_span!(target: SPANS, "sindri", otel.kind = "client"),
        command.run(&Invocation {
            flags: &flags,
            store: store.as_ref(),
            output,
            clock: now,
            describe: Arguments::command,
        }),
    ));
    traces.into_iter().for_each(TraceExport::end);
    result
}

#[expect(clippy::disallowed_methods, reason = "the process owns the clock")]
fn now() -> Timestamp {
    Timestamp::now()
}
