//! Results of all runs together.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use sindri_world::oracle::Violation;
use sindri_world::scenario::Scenario;

use crate::report::{Report, Table};

/// A run in which a property did not hold.
pub struct RunViolation {
    pub scenario: String,
    pub seed: u64,
    pub violation: Violation,
    /// Command that repeats the run.
    pub replay: String,
}

/// Results of all runs.
pub struct Summary {
    /// Number of runs and virtual time by scenario.
    pub scenarios: BTreeMap<String, (u64, Duration)>,
    pub violations: Vec<RunViolation>,
    pub seeds: u64,
    pub wall_time: Duration,
    pub report: Report,
    behaviours: BTreeMap<String, Vec<String>>,
}

impl Summary {
    pub fn new(chosen: &[Scenario]) -> Self {
        Self {
            scenarios: BTreeMap::new(),
            violations: Vec::new(),
            seeds: 0,
            wall_time: Duration::ZERO,
            report: Report::default(),
            behaviours: group_by_behaviour(chosen),
        }
    }

    pub fn add(&mut self, scenario: &str, virtual_time: Duration) {
        let (runs, total) = self.scenarios.entry(scenario.to_owned()).or_default();
        *runs += 1;
        *total += virtual_time;
    }

    pub fn runs(&self) -> u64 {
        self.scenarios.values().map(|(runs, _)| runs).sum()
    }

    pub fn virtual_time(&self) -> Duration {
        self.scenarios.values().map(|(_, time)| *time).sum()
    }

    pub fn count_violations(&self, scenario: &str) -> usize {
        self.violations.iter().filter(|violation| violation.scenario == scenario).count()
    }

    /// Describes all runs in one line.
    pub fn describe(&self) -> String {
        format!(
            "{} scenarios, {} runs, {:.1} virtual hours in {:.1} s, {} violations",
            self.scenarios.len(),
            self.runs(),
            self.virtual_time().as_secs_f64() / 3600.0,
            self.wall_time.as_secs_f64(),
            self.violations.len()
        )
    }

    /// Adds the table of the scenarios to the report.
    pub fn add_table(&mut self) {
        let rows = self.scenarios.iter().map(|(name, (runs, time))| {
            let hours = format!("{:.1} h", time.as_secs_f64() / 3600.0);
            vec![name.clone(), format!("{runs} runs"), hours, format!("{} violations", self.count_violations(name))]
        });
        let rows = rows.collect();
        self.report.add_table(Table { title: "Scenarios", rows });
    }

    pub fn to_json(&self) -> Value {
        let violations: Vec<Value> = self
            .violations
            .iter()
            .map(|RunViolation { scenario, seed, violation, replay }| {
                json!({
                    "scenario": scenario, "seed": seed, "oracle": violation.oracle,
                    "message": violation.message, "replay": replay,
                })
            })
            .collect();
        json!({
            "scenarios": self.scenarios.len(), "runs": self.runs(), "seeds": self.seeds,
            "virtual_seconds": self.virtual_time().as_secs_f64(), "wall_seconds": self.wall_time.as_secs_f64(),
            "violations": violations, "goals_unreached": [], "behaviours": self.behaviours,
        })
    }
}

/// Groups the names of scenarios by the ids of the behaviours that they prove.
pub fn group_by_behaviour(chosen: &[Scenario]) -> BTreeMap<String, Vec<String>> {
    let mut behaviours: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for scenario in chosen {
        for id in &scenario.proves {
            behaviours.entry(id.clone()).or_default().push(scenario.name.clone());
        }
    }
    behaviours
}
