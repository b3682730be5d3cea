//! Flags of the command line.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sindri_world::engine::EngineKind;

use crate::shard::Shard;

/// Name of an engine on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum EngineName {
    Fast,
    Turmoil,
}

impl From<EngineName> for EngineKind {
    fn from(name: EngineName) -> Self {
        match name {
            EngineName::Fast => EngineKind::Fast,
            EngineName::Turmoil => EngineKind::Turmoil,
        }
    }
}

/// Flags of `sim`.
#[derive(Args, Clone, Debug)]
pub struct SimFlags {
    /// Run only this scenario.
    #[arg(long)]
    pub scenario: Option<String>,
    /// First seed. Seed 0 is the scenario as it is written; every other seed adds faults.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Kill an agent at this event of the agents, counted from 1.
    #[arg(long, value_name = "EVENT")]
    pub kill_at: Option<u64>,
    /// Number of seeds [default: with --scenario seed 0 and 10 more, otherwise 1].
    #[arg(long)]
    pub seeds: Option<u64>,
    /// Go on with further seeds until this number of minutes has passed; with --worlds begin no world after them.
    #[arg(long)]
    pub minutes: Option<u64>,
    /// Run this number of random worlds instead of scenarios, from --seed on.
    #[arg(long, value_name = "N", conflicts_with_all = ["scenario", "kill_at", "determinism", "list"])]
    pub worlds: Option<u64>,
    /// Begin no world after one has failed.
    #[arg(long, requires = "worlds")]
    pub fail_fast: bool,
    /// Fail if this process has needed more memory than this.
    #[arg(long, value_name = "MB", requires = "worlds")]
    pub memory_max: Option<u64>,
    /// Run only this share of the worlds or scenarios, so that N machines run all of them.
    #[arg(long, value_name = "I/N", conflicts_with = "scenario")]
    pub shard: Option<Shard>,
    /// Add up the results of --worlds --json in this directory.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["worlds", "scenario", "kill_at", "determinism", "coverage", "list"])]
    pub merge: Option<PathBuf>,
    /// Number of runs at the same time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub jobs: u32,
    /// Engine that drives the hosts; fast if left out, and both for --determinism.
    #[arg(long, value_enum)]
    pub engine: Option<EngineName>,
    /// Write the result as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with figures, and with a timeline of each failing run or of the first one.
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// List the scenarios and the behaviours that they prove.
    #[arg(long)]
    pub list: bool,
    /// List the behaviours and the scenarios that prove them; with --worlds the situations that the worlds reached.
    #[arg(long)]
    pub coverage: bool,
    /// Run every scenario on each engine, in this process and in a fresh one, and compare the traces.
    #[arg(long)]
    pub determinism: bool,
    /// Print the trace of each run.
    #[arg(long)]
    pub trace: bool,
    /// The project's directory.
    #[arg(long, default_value = ".", hide = true)]
    pub root: PathBuf,
}

impl SimFlags {
    /// Returns true if neither scenarios, seeds nor worlds were chosen.
    pub fn is_default_run(&self) -> bool {
        let has_seeds = self.seed.is_some() || self.seeds.is_some() || self.minutes.is_some();
        self.scenario.is_none() && self.worlds.is_none() && self.kill_at.is_none() && !has_seeds
    }

    /// Engine that drives the hosts.
    pub fn engine(&self) -> EngineName {
        self.engine.unwrap_or(EngineName::Fast)
    }
}

/// Flags of `bench`.
#[derive(Args, Clone, Debug)]
pub struct BenchFlags {
    /// Write the figures as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Flags of `hash`.
#[derive(Args, Clone, Debug)]
pub struct HashFlags {
    #[arg(long)]
    pub scenario: String,
    #[arg(long)]
    pub seed: u64,
    #[arg(long, value_enum)]
    pub engine: EngineName,
    #[arg(long, default_value = ".")]
    pub root: PathBuf,
}
