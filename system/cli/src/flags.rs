//! Flags of every command.

use std::path::PathBuf;

use clap::Args;

use crate::output::Format;

/// Flags of every command. They and their variables take precedence over the context.
#[derive(Args, Default)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Flags {
    /// Context to use, instead of the current one (see `sindri context`).
    #[arg(long, global = true, env = "SINDRI_CONTEXT", value_name = "NAME")]
    pub context: Option<String>,
    /// URL of the broker; by default that of the context, or http://127.0.0.1:3000.
    #[arg(long, global = true, env = "SINDRI_BROKER", value_name = "URL")]
    pub broker: Option<String>,
    /// Certificate authorities in PEM for the broker's certificate, instead of those that this machine trusts.
    #[arg(long, global = true, env = "SINDRI_BROKER_CA_FILE", value_name = "FILE")]
    pub broker_ca_file: Option<PathBuf>,
    /// Access key. Other users of the machine can see it on the command line: use the variable or a file.
    #[arg(long, global = true, env = "SINDRI_KEY", hide_env_values = true, value_name = "KEY")]
    pub key: Option<String>,
    /// File with the access key.
    #[arg(long, global = true, env = "SINDRI_KEY_FILE", value_name = "FILE", conflicts_with = "key")]
    pub key_file: Option<PathBuf>,
    /// File with the token of `sindri login`, which is used if there is no access key.
    #[arg(long, global = true, env = "SINDRI_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Format of the output.
    #[arg(short, long, global = true, value_name = "FORMAT", default_value = "table")]
    pub output: Format,
    /// URL of a collector to which the trace of this command is exported by OTLP over HTTP.
    #[arg(long, global = true, env = "SINDRI_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<String>,
}
