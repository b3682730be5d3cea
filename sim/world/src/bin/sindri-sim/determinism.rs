//! The same seed gives the same trace: twice in this process and twice in fresh ones, on both engines; another
//! seed gives another.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use sindri_world::engine::Arm;
use sindri_world::run::{self, Order};
use sindri_world::scenario::{Library, Scenario};

use crate::pool::run_all;

/// The story as it is written, and two explorations of it.
const SEEDS: [u64; 3] = [0, 1, 2];

struct Case<'a> {
    scenario: &'a Scenario,
    arm: Arm,
    seed: u64,
}

pub fn check(library: &Library, chosen: &[Scenario], root: &Path, jobs: u32) -> Result<bool, String> {
    let cases: Vec<Case<'_>> = chosen
        .iter()
        .flat_map(|scenario| Arm::ALL.map(|arm| SEEDS.map(|seed| Case { scenario, arm, seed })))
        .flatten()
        .collect();
    let hashes = run_all(&cases, jobs, |case| {
        let hashes = four_hashes(library, case, root)?;
        let same = hashes.iter().all(|hash| *hash == hashes[0]);
        let (name, arm, seed) = (&case.scenario.name, case.arm.name(), case.seed);
        eprintln!("  {name:<40} {arm:<8} seed {seed}  {}  {}", hashes[0], if same { "four times" } else { "DIFFERS" });
        Ok::<_, String>(hashes)
    });
    let hashes: Vec<Vec<String>> = hashes.into_iter().collect::<Result<_, _>>()?;
    let mut held = true;
    for (case, hashes) in cases.iter().zip(&hashes) {
        if hashes.iter().any(|hash| *hash != hashes[0]) {
            held = false;
            println!(
                "{} on {} with seed {}: the traces differ: {hashes:?}",
                case.scenario.name,
                case.arm.name(),
                case.seed
            );
        }
    }
    for (hashes, cases) in hashes.chunks(SEEDS.len()).zip(cases.chunks(SEEDS.len())) {
        let different: BTreeSet<&String> = hashes.iter().map(|four| &four[0]).collect();
        if different.len() < SEEDS.len() {
            held = false;
            println!("{} on {}: two seeds have the same trace", cases[0].scenario.name, cases[0].arm.name());
        }
    }
    println!(
        "{} scenarios on {} engines with {} seeds, four runs each: {}",
        chosen.len(),
        Arm::ALL.len(),
        SEEDS.len(),
        if held { "every trace is reproducible" } else { "NOT reproducible" }
    );
    Ok(held)
}

fn four_hashes(library: &Library, case: &Case<'_>, root: &Path) -> Result<Vec<String>, String> {
    let order = Order { scenario: case.scenario, library, arm: case.arm, seed: case.seed, kill_at: None };
    Ok(vec![run::run(&order)?.hash, run::run(&order)?.hash, elsewhere(case, root)?, elsewhere(case, root)?])
}

fn elsewhere(case: &Case<'_>, root: &Path) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .args(["hash", "--scenario", &case.scenario.name, "--engine", case.arm.name()])
        .args(["--seed", &case.seed.to_string(), "--root"])
        .arg(root)
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
