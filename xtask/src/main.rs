//! Every task of the project: `cargo xtask sim`, `cargo xtask test` and the others.
//!
//! Thin: a task builds the binary that does the work and runs it, so that this crate compiles in seconds.

mod charts;
mod clients;
mod counts;
mod crates;
mod dependencies;
mod documents;
mod durations;
mod figures;
mod fuzz;
mod login;
mod mutants;
mod packages;
mod parts;
mod postgres;
mod process;
mod release;
mod report;
mod suite;
mod tidy;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use process::{REAL_BINARIES, Run, root};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Every task of the project.")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Runs every scenario in the simulated world, then random worlds for a minute (`sim --help` for more).
    #[command(disable_help_flag = true)]
    Sim {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Runs the conformance suite on a cluster, with the real binaries on real ports (`conformance --help` for more).
    #[command(disable_help_flag = true)]
    Conformance {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Broker, agent and a simulated cluster on real ports: a stack is submitted and converges.
    #[command(disable_help_flag = true)]
    Demo {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Clusters on demand: up, down, status, build (`cluster --help` for more).
    #[command(disable_help_flag = true)]
    Cluster {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Records the responses of a real API server, or checks the recordings (`record --help` for more).
    #[command(disable_help_flag = true)]
    Record {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Compares the simulated API server with recordings and with a real one (`fidelity --help` for more).
    #[command(disable_help_flag = true)]
    Fidelity {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Measures every figure that the project claims.
    Bench {
        /// Only this area: sim, apiserver, broker, agent, cluster or people.
        area: Option<String>,
        /// Write the figures as JSON.
        #[arg(long, value_name = "FILE")]
        json: Option<String>,
    },
    /// Makes a container image of each program, as OCI archives in target/images, and loads them into an engine.
    Images,
    /// Makes the archive of a release in target/dist, with checksums and a bill of materials.
    Dist,
    /// Runs a coverage-guided fuzzer on server-side apply, or on CEL.
    Fuzz {
        /// Code that is fuzzed.
        #[arg(value_enum, default_value = "apply")]
        subject: fuzz::Subject,
        /// Duration in seconds.
        #[arg(long, default_value_t = 300)]
        seconds: u32,
    },
    /// Plants the bugs of sim/mutants and checks that the simulation catches each.
    Mutants {
        /// Only these bugs.
        names: Vec<String>,
        /// Minutes of random worlds for each bug.
        #[arg(long, default_value_t = 5)]
        minutes: u32,
    },
    /// The test command: formatting, lints, tests, simulation, conformance, documents.
    Test {
        /// The nightly command: longer explorations, planted bugs, fuzzing.
        #[arg(long)]
        all: bool,
        /// Run one part only.
        #[arg(long, value_name = "NAME")]
        part: Option<String>,
        /// Build nothing: everything that the part needs is built.
        #[arg(long, requires = "part")]
        built: bool,
        /// Show the parts and how long they took the last time.
        #[arg(long)]
        list: bool,
    },
}

/// Areas of benchmarks.
const AREAS: [&str; 6] = ["sim", "apiserver", "broker", "agent", "cluster", "people"];
/// Exit code for wrong arguments and missing programs.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Sim { args } => sim(&args),
        Task::Conformance { args } => conformance(&args),
        Task::Demo { args } => demo(&args),
        Task::Cluster { args } => cluster(&args),
        Task::Record { args } => record(&args),
        Task::Fidelity { args } => fidelity(&args),
        Task::Bench { area, json } => bench(area.as_deref(), json.as_deref()),
        Task::Images => release::make_images(),
        Task::Dist => release::make_archives(),
        Task::Fuzz { subject, seconds } => fuzz::run(subject, seconds),
        Task::Mutants { names, minutes } => {
            mutants::catch_all(&mutants::Selection { names, minutes }).map(|caught| u8::from(!caught))
        }
        Task::Test { list: true, .. } => {
            suite::list();
            Ok(0)
        }
        Task::Test { all, part, built, .. } => suite::test(&suite::Selection { all, part, is_built: built }),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn sim(args: &[String]) -> Result<u8, String> {
    tools::require_compiler()?;
    process::build(&["sindri-sim"])?;
    Run::built("sindri-sim").args(["sim", "--root"]).arg(root()).args(args).code()
}

fn conformance(args: &[String]) -> Result<u8, String> {
    tools::require_compiler()?;
    process::build(&REAL_BINARIES)?;
    Run::built("sindri-conformance").args(["run", "--root"]).arg(root()).args(args).code()
}

fn demo(args: &[String]) -> Result<u8, String> {
    tools::require_compiler()?;
    process::build(&REAL_BINARIES)?;
    Run::built("sindri-conformance").args(["demo", "--root"]).arg(root()).args(args).code()
}

fn cluster(args: &[String]) -> Result<u8, String> {
    tools::require_compiler()?;
    process::build(&["sindri-cluster", "sindri-apiserver"])?;
    Run::built("sindri-cluster").args(args).code()
}

fn record(args: &[String]) -> Result<u8, String> {
    tools::require_compiler()?;
    process::build(&["sindri-record"])?;
    Run::built("sindri-record").args(["record", "--root"]).arg(root()).args(args).code()
}

fn fidelity(args: &[String]) -> Result<u8, String> {
    tools::require_compiler()?;
    process::build(&["sindri-fidelity"])?;
    Run::built("sindri-fidelity").arg("--root").arg(root()).args(args).code()
}

fn bench(area: Option<&str>, json: Option<&str>) -> Result<u8, String> {
    if let Some(unknown) = area.filter(|area| !AREAS.contains(area)) {
        return Err(format!("there are no figures for {unknown:?}; areas: {}", AREAS.join(", ")));
    }
    let areas: Vec<&str> = AREAS.into_iter().filter(|known| area.is_none_or(|area| area == *known)).collect();
    tools::require_compiler()?;
    let simulation: &[&str] = if areas.contains(&"sim") { &["sindri-sim"] } else { &[] };
    process::build_optimised(&[&["sindri-bench"], simulation, &REAL_BINARIES[..]].concat())?;
    figures::measure(&areas, json)
}
