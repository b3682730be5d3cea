//! Every story as it is written, then with the faults of many seeds.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sindri_world::run::{self, Order, Report};
use sindri_world::scenario::{Library, Scenario};

use crate::output::{self, Summary, Violated};
use crate::pool::run_all;
use crate::{EngineName, SimFlags};

/// Seeds that are explored beside the story itself.
const EXPLORED_SEEDS: u64 = 20;

struct Ran<'a> {
    scenario: &'a Scenario,
    play: Playing,
    report: Report,
}

/// How a story is played.
#[derive(Clone, Copy, Debug)]
struct Playing {
    seed: u64,
    kill_at: Option<u64>,
}

pub fn explore(library: &Library, chosen: &[Scenario], flags: &SimFlags) -> Result<bool, String> {
    let first = flags.seed.unwrap_or(0);
    let count = flags.seeds.unwrap_or(if flags.seed.is_some() { 1 } else { EXPLORED_SEEDS + 1 });
    let started = now();
    let mut summary = Summary::new(chosen);
    let mut from = first;
    loop {
        for scenario in chosen {
            let plays: Vec<Playing> =
                (from..from + count).map(|seed| Playing { seed, kill_at: flags.kill_at }).collect();
            let mut ran = run_plays(library, scenario, &plays, flags)?;
            let events = ran.first().map(|ran| ran.report.events);
            if let Some(events) =
                events.filter(|_| scenario.kill_at_every_event && from == 0 && flags.kill_at.is_none())
            {
                let killed = (1..=events).map(|event| Playing { seed: 0, kill_at: Some(event) }).collect::<Vec<_>>();
                ran.extend(run_plays(library, scenario, &killed, flags)?);
            }
            note(&mut summary, ran, flags);
            summary.wall = now() - started;
            output::progress(scenario, &summary);
        }
        from += count;
        let minutes = flags.minutes.unwrap_or(0);
        if now() - started >= Duration::from_secs(minutes * 60) {
            break;
        }
    }
    summary.seeds = from - first;
    output::table(&summary);
    if let Some(file) = &flags.json {
        output::write_json(file, &summary.to_json())?;
    }
    Ok(summary.violations.is_empty())
}

fn run_plays<'a>(
    library: &Library,
    scenario: &'a Scenario,
    plays: &[Playing],
    flags: &SimFlags,
) -> Result<Vec<Ran<'a>>, String> {
    let reports = run_all(plays, flags.jobs, |Playing { seed, kill_at }| {
        run::run(&Order { scenario, library, arm: flags.engine.into(), seed: *seed, kill_at: *kill_at })
    });
    let pairs = plays.iter().zip(reports);
    pairs.map(|(play, report)| Ok(Ran { scenario, play: *play, report: report? })).collect()
}

fn note(summary: &mut Summary, ran: Vec<Ran<'_>>, flags: &SimFlags) {
    for Ran { scenario, play, report } in ran {
        summary.add(&scenario.name, report.virtual_time);
        if flags.trace {
            report.trace.iter().for_each(|line| println!("{line}"));
        }
        if let Some(violation) = report.violation {
            let violated = Violated {
                scenario: scenario.name.clone(),
                seed: play.seed,
                violation,
                replay: replay(scenario, play, flags.engine),
            };
            output::violated(&violated, &report.trace);
            summary.violations.push(violated);
        }
    }
}

fn replay(scenario: &Scenario, Playing { seed, kill_at }: Playing, engine: EngineName) -> String {
    let engine = match engine {
        EngineName::Fast => "",
        EngineName::Turmoil => " --engine turmoil",
    };
    let kill_at = kill_at.map(|event| format!(" --kill-at {event}")).unwrap_or_default();
    format!("cargo xtask sim --scenario {} --seed {seed}{kill_at}{engine} --trace", scenario.name)
}

/// Real time, on a thread that is not simulated.
#[expect(clippy::disallowed_methods, reason = "measures how long the simulation itself takes")]
pub fn now() -> Instant {
    Instant::now()
}

/// Behaviours by id, with the stories that prove them.
pub fn behaviours(chosen: &[Scenario]) -> BTreeMap<String, Vec<String>> {
    let mut behaviours: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for scenario in chosen {
        for id in &scenario.proves {
            behaviours.entry(id.clone()).or_default().push(scenario.name.clone());
        }
    }
    behaviours
}
