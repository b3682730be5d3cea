//! Worlds and scenarios on several machines: each runs one shard, and the results of worlds are merged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;
use serde_json::{Value, json};

/// One of several equal shares of the seeds or scenarios; on the command line `I/N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Number of this share, from 1.
    index: u64,
    /// Number of shares.
    count: u64,
}

impl Shard {
    /// Returns true if a seed, or the position of a scenario, belongs to this share.
    pub fn contains(self, number: u64) -> bool {
        number % self.count == self.index - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match parts {
            Some((index, count)) if 1 <= index && index <= count => Ok(Self { index, count }),
            _ => Err("write I/N, with I from 1 to N".to_owned()),
        }
    }
}

/// Result of one run of worlds, as its JSON file has it.
#[derive(Default, Deserialize)]
struct ShardResult {
    worlds: u64,
    operations: u64,
    faults: u64,
    virtual_seconds: f64,
    violations: Vec<Value>,
    goals_unreached: BTreeSet<String>,
}

/// Adds up the results in a directory and prints the sum; returns it with true if nothing was violated.
pub fn merge(directory: &Path) -> Result<(Value, bool), String> {
    let mut sum = ShardResult::default();
    let files = list_results(directory)?;
    for (number, file) in files.iter().enumerate() {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let result: ShardResult = serde_json::from_str(&text)
            .map_err(|error| format!("{} is not a result of --worlds: {error}", file.display()))?;
        sum.worlds += result.worlds;
        sum.operations += result.operations;
        sum.faults += result.faults;
        sum.virtual_seconds += result.virtual_seconds;
        sum.violations.extend(result.violations);
        // A goal is unreached if no share reached it.
        sum.goals_unreached.retain(|goal| result.goals_unreached.contains(goal));
        if number == 0 {
            sum.goals_unreached = result.goals_unreached;
        }
    }
    let ShardResult { worlds, operations, faults, virtual_seconds, violations, goals_unreached } = sum;
    println!(
        "{} files: {worlds} worlds, {:.1} virtual hours, {operations} operations, {faults} faults, {} violations",
        files.len(),
        virtual_seconds / 3600.0,
        violations.len(),
    );
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for violation in &violations {
        groups
            .entry(violation["oracle"].as_str().unwrap_or_default())
            .or_default()
            .push(violation["world"].to_string());
    }
    groups.iter().for_each(|(oracle, seeds)| println!("{oracle}: worlds {}", seeds.join(", ")));
    if !goals_unreached.is_empty() {
        println!("no world reached: {}", goals_unreached.iter().map(String::as_str).collect::<Vec<_>>().join(", "));
    }
    let is_green = violations.is_empty();
    let result = json!({
        "worlds": worlds, "operations": operations, "faults": faults, "virtual_seconds": virtual_seconds,
        "violations": violations, "goals_unreached": goals_unreached,
    });
    Ok((result, is_green))
}

/// Lists the JSON files of a directory. One without any is a mistake: nothing was run.
fn list_results(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(format!("{} has no JSON files", directory.display()));
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_belongs_to_exactly_one_shard() {
        let shards: Vec<Shard> = (1..=3).map(|index| format!("{index}/3").parse().unwrap()).collect();
        for seed in 0..100 {
            assert_eq!(shards.iter().filter(|shard| shard.contains(seed)).count(), 1, "seed {seed}");
        }
        for invalid in ["", "0/3", "4/3", "1", "1/0", "a/b"] {
            assert!(invalid.parse::<Shard>().is_err(), "{invalid}");
        }
    }
}
