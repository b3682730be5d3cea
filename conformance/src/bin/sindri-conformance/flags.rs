//! Flags of the commands.

use std::path::PathBuf;

use clap::Args;

/// Flags of `run`.
#[derive(Args)]
pub struct RunFlags {
    /// Provider of clusters: sim, local, container or kind [default: sim].
    #[arg(long)]
    pub cluster: Option<String>,
    /// Only the scenarios with this text in their name or title.
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    pub filter: String,
    /// Number of scenarios at the same time, each with processes and clusters of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub jobs: u32,
    /// List the scenarios and the behaviours that they prove.
    #[arg(long)]
    pub list: bool,
    /// Write the result as JUnit's XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the result as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Directory of the project.
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub root: PathBuf,
}

/// Flags of `demo`.
#[derive(Args)]
pub struct DemoFlags {
    /// Keep everything running for so many seconds at the end [default: until Ctrl-C at a terminal, else not at all].
    #[arg(long, value_name = "N")]
    pub seconds: Option<u32>,
    /// Directory of the project.
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub root: PathBuf,
}
