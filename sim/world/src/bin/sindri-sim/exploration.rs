//! Runs every scenario as it is written, then with the faults of many seeds.

use std::time::Duration;

use sindri_world::run::{self, RunReport, RunRequest};
use sindri_world::scenario::{Library, Scenario};

use crate::flags::{EngineName, SimFlags};
use crate::output;
use crate::pool::run_all;
use crate::real_time::now;
use crate::report::NamedRun;
use crate::summary::{RunViolation, Summary};

/// Seeds that are explored besides the scenario as it is written.
const EXPLORED_SEEDS: u64 = 10;

struct FinishedRun {
    variant: Variant,
    report: RunReport,
}

/// Variant of a scenario: its seed, and the event at which an agent is killed.
#[derive(Clone, Copy, Debug)]
struct Variant {
    seed: u64,
    kill_at: Option<u64>,
}

/// Runs the chosen scenarios and prints the results.
pub fn explore(library: &Library, chosen: &[Scenario], flags: &SimFlags) -> Result<Summary, String> {
    let first = flags.seed.unwrap_or(0);
    let has_one_seed = flags.seed.is_some() || flags.is_default_run();
    let count = flags.seeds.unwrap_or(if has_one_seed { 1 } else { EXPLORED_SEEDS + 1 });
    let started = now();
    let mut summary = Summary::new(chosen);
    let mut from = first;
    loop {
        for scenario in chosen {
            let seeds: Vec<Variant> =
                (from..from + count).map(|seed| Variant { seed, kill_at: flags.kill_at }).collect();
            let mut finished = run_variants(library, scenario, &seeds, flags)?;
            let events = finished.first().map_or(0, |run| run.report.events);
            if scenario.kill_at_every_event && from == 0 && flags.kill_at.is_none() {
                let kills: Vec<Variant> = (1..=events).map(|event| Variant { seed: 0, kill_at: Some(event) }).collect();
                finished.extend(run_variants(library, scenario, &kills, flags)?);
            }
            record(&mut summary, scenario, finished, flags);
            summary.wall_time = now() - started;
            output::print_progress(scenario, &summary);
        }
        from += count;
        let minutes = flags.minutes.unwrap_or(0);
        if now() - started >= Duration::from_secs(minutes * 60) {
            break;
        }
    }
    summary.seeds = from - first;
    output::print_table(&summary);
    summary.add_table();
    Ok(summary)
}

fn run_variants(
    library: &Library,
    scenario: &Scenario,
    variants: &[Variant],
    flags: &SimFlags,
) -> Result<Vec<FinishedRun>, String> {
    let reports = run_all(variants, flags.jobs, |Variant { seed, kill_at }| {
        run::run(&RunRequest { scenario, library, engine: flags.engine().into(), seed: *seed, kill_at: *kill_at })
    });
    let pairs = variants.iter().zip(reports);
    pairs.map(|(variant, report)| Ok(FinishedRun { variant: *variant, report: report? })).collect()
}

fn record(summary: &mut Summary, scenario: &Scenario, finished: Vec<FinishedRun>, flags: &SimFlags) {
    for FinishedRun { variant, report } in finished {
        summary.add(&scenario.name, report.virtual_time);
        if flags.trace {
            report.trace.iter().for_each(|line| println!("{line}"));
        }
        let replay = replay_command(scenario, variant, flags.engine());
        if flags.report.is_some() {
            let name = format!("{}, seed {}", scenario.name, variant.seed);
            let run = NamedRun { name, replay: replay.clone(), story: scenario.to_yaml(), report: &report };
            summary.report.add_run(run);
        }
        if let Some(violation) = report.violation {
            let (scenario, seed) = (scenario.name.clone(), variant.seed);
            let violation = RunViolation { scenario, seed, violation, replay };
            output::print_violation(&violation, &report.trace);
            summary.violations.push(violation);
        }
    }
}

fn replay_command(scenario: &Scenario, Variant { seed, kill_at }: Variant, engine: EngineName) -> String {
    let engine = match engine {
        EngineName::Fast => "",
        EngineName::Turmoil => " --engine turmoil",
    };
    let kill_at = kill_at.map(|event| format!(" --kill-at {event}")).unwrap_or_default();
    format!("cargo xtask sim --scenario {} --seed {seed}{kill_at}{engine} --trace", scenario.name)
}
