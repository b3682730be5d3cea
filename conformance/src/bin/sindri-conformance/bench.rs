//! `bench-broker` and `bench-agent`: measure the broker or the agent and print every figure.

use std::path::Path;

use sindri_cluster::ProviderName;
use sindri_cluster::program::{Ending, say};
use sindri_conformance::bench::{Bench, agent, has_part, measure, memory_directory};
use sindri_conformance::waiter::Waiter;
use sindri_figures::Sheet;

use crate::run::{parse_provider, provider};
use crate::{BenchAgentFlags, BenchFlags, prepare};

pub fn bench(flags: &BenchFlags) -> Result<(), Ending> {
    if !has_part(&flags.filter) {
        return Err(Ending::Mistake(format!("no part of the broker's figures has {:?} in its name", flags.filter)));
    }
    let broken = |error: std::io::Error| Ending::Broken(error.to_string());
    let own = std::env::current_exe().map_err(broken)?;
    let directory = own.parent().unwrap_or(Path::new("."));
    let broker = directory.join("sindri-broker");
    if !broker.is_file() {
        let build = "build it with `cargo build --release -p sindri-broker`";
        return Err(Ending::Mistake(format!("sindri-broker is not in {}: {build}", directory.display())));
    }
    let (disk, memory) = (tempfile::tempdir().map_err(broken)?, memory_directory().map_err(broken)?);
    let bench = Bench {
        own,
        broker,
        disk: disk.path().to_owned(),
        memory: memory.path().to_owned(),
        postgres_url: flags.postgres_url.clone(),
        waiter: Waiter::new().map_err(broken)?,
    };
    let mut sheet = Sheet::new("broker", say);
    let measured = measure(&bench, &flags.filter, &mut sheet);
    if let Some(code) = bench.waiter.interrupted() {
        return Err(Ending::Interrupted(code));
    }
    measured.map_err(Ending::Broken)?;
    finish(sheet, flags.json.as_deref())
}

/// Clusters on which the agent is measured: the simulated one, and the real one that needs nothing installed.
const CLUSTERS: [ProviderName; 2] = [ProviderName::Sim, ProviderName::Local];

pub fn bench_agent(flags: &BenchAgentFlags) -> Result<(), Ending> {
    let names = match &flags.cluster {
        Some(name) => vec![parse_provider(name)?],
        None => CLUSTERS.to_vec(),
    };
    if !agent::has_part(&flags.filter) {
        return Err(Ending::Mistake(format!("no part of the agent's figures has {:?} in its name", flags.filter)));
    }
    let (binaries, waiter) = prepare()?;
    let providers = names.into_iter().map(|name| provider(name, &binaries)).collect::<Result<Vec<_>, _>>()?;
    let place = |provider| agent::Place { provider, binaries: &binaries, waiter: &waiter, tell };
    let places: Vec<_> = providers.iter().map(|provider| place(&**provider)).collect();
    let mut sheet = Sheet::new("agent", say);
    let measured = agent::measure(&places, &flags.filter, &mut sheet);
    if let Some(code) = waiter.interrupted() {
        return Err(Ending::Interrupted(code));
    }
    measured.map_err(Ending::Broken)?;
    finish(sheet, flags.json.as_deref())
}

/// For who waits; the table is elsewhere.
fn tell(words: &str) {
    eprintln!("{words}");
}

/// Writes the figures if that is wanted. What falls short is shown; what could not be measured is a failure.
fn finish(sheet: Sheet, json: Option<&Path>) -> Result<(), Ending> {
    let missing = sheet.missing();
    if let Some(file) = json {
        let unwritable = |error| Ending::Mistake(format!("{} cannot be written: {error}", file.display()));
        std::fs::write(file, format!("{:#}\n", sheet.to_json())).map_err(unwritable)?;
    }
    if missing == 0 { Ok(()) } else { Err(Ending::Broken(format!("{missing} parts could not be measured"))) }
}
