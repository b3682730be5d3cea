//! All scenario files of a directory, read and checked.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sindri_model::yaml;
use thiserror::Error;

use super::{Scenario, Step};
use crate::hosts::{broker_name, replica_name};

/// More brokers than this show nothing that fewer do not.
const BROKERS_MAX: usize = 5;
/// And more processes of an agent neither.
const REPLICAS_MAX: usize = 5;

/// A file that cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{file}:{line}: {reason}")]
pub struct ScenarioError {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub reason: String,
}

/// Every scenario, and the bundles that they use.
#[derive(Clone, Debug)]
pub struct Library {
    /// By name.
    pub scenarios: Vec<Scenario>,
    bundles: PathBuf,
}

impl Library {
    /// Reads `scenarios/` and checks what can be checked before a run, below the project's directory.
    pub fn read(root: &Path) -> Result<Self, Vec<ScenarioError>> {
        let directory = root.join("scenarios");
        let mut library = Self { scenarios: Vec::new(), bundles: root.join("fixtures/bundles") };
        let mut errors = Vec::new();
        for path in files(&directory).map_err(|error| vec![error])? {
            match library.read_file(&path) {
                Ok(scenario) => library.scenarios.push(scenario),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(library) } else { Err(errors) }
    }

    /// No scenarios and no bundles.
    pub fn empty() -> Self {
        Self { scenarios: Vec::new(), bundles: PathBuf::new() }
    }

    /// The scenario of that name.
    pub fn find(&self, name: &str) -> Option<&Scenario> {
        self.scenarios.iter().find(|scenario| scenario.name == name)
    }

    /// The text of a bundle.
    pub fn bundle(&self, name: &str) -> Result<String, String> {
        let path = self.bundles.join(name);
        std::fs::read_to_string(&path).map_err(|error| format!("bundle {name}: {error}"))
    }

    /// Reads one file.
    pub fn read_file(&self, path: &Path) -> Result<Scenario, ScenarioError> {
        let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let fail = |line, reason| ScenarioError { file: file.clone(), line, reason };
        let text = std::fs::read_to_string(path).map_err(|error| fail(1, error.to_string()))?;
        let mut scenario: Scenario = yaml::parse_into(&text).map_err(|error| fail(error.line, error.reason.clone()))?;
        scenario.name = file.trim_end_matches(".yaml").to_owned();
        if !(1..=BROKERS_MAX).contains(&scenario.fleet.brokers) {
            return Err(fail(line_of(&text, "fleet"), format!("a fleet has 1 to {BROKERS_MAX} brokers")));
        }
        if !(1..=REPLICAS_MAX).contains(&scenario.fleet.replicas) {
            return Err(fail(line_of(&text, "fleet"), format!("an agent has 1 to {REPLICAS_MAX} processes")));
        }
        if scenario.fleet.agents.is_empty() {
            return Err(fail(line_of(&text, "fleet"), "a fleet has at least one agent".to_owned()));
        }
        for (index, step) in scenario.steps.iter().enumerate() {
            self.check_step(&scenario, step).map_err(|reason| fail(step_line(&text, index), reason))?;
        }
        Ok(scenario)
    }

    fn check_step(&self, scenario: &Scenario, step: &Step) -> Result<(), String> {
        let agents: BTreeSet<&str> = scenario.fleet.agents.iter().map(String::as_str).collect();
        let known = |name: &str| {
            if agents.contains(name) { Ok(()) } else { Err(format!("the fleet has no agent {name:?}")) }
        };
        let is_broker = |name: &str| (0..scenario.fleet.brokers).any(|index| broker_name(index) == name);
        let host = |name: &str| {
            let is_replica = scenario
                .fleet
                .agents
                .iter()
                .any(|agent| (1..scenario.fleet.replicas).any(|index| replica_name(agent, index) == name));
            if is_broker(name) || is_replica { Ok(()) } else { known(name.strip_suffix("-api").unwrap_or(name)) }
        };
        match step {
            Step::Submit(submit) => match (&submit.bundle, &submit.yaml) {
                (Some(bundle), None) => self.bundle(bundle).map(drop),
                (None, Some(_)) => Ok(()),
                _ => Err("submit takes either a bundle or a yaml".to_owned()),
            },
            Step::Target(targeting) | Step::Untarget(targeting) => known(&targeting.agent),
            Step::Activate(activation) => known(&activation.agent),
            Step::Dismiss(agent) | Step::Enlist(agent) => known(&agent.agent),
            Step::Label(labelling) | Step::Unlabel(labelling) => known(&labelling.agent),
            Step::Await(condition) => {
                let given = usize::from(condition.applied.is_some())
                    + usize::from(condition.gone)
                    + usize::from(condition.failed.is_some())
                    + usize::from(condition.condition.is_some());
                if given != 1 {
                    return Err("await takes exactly one of applied, gone, failed and condition".to_owned());
                }
                condition.agent.as_deref().map_or(Ok(()), known)
            }
            Step::Partition(link) | Step::Repair(link) => link.between.iter().try_for_each(|name| host(name)),
            Step::Latency(latency) => latency.between.iter().try_for_each(|name| host(name)),
            Step::Kill(name) | Step::Restart(name) => host(name),
            Step::Quiet(quiet) => known(&quiet.cluster),
            Step::Fail(fault) => known(&fault.cluster),
            Step::Heal(cluster) => known(&cluster.cluster),
            Step::Create(create) => known(&create.cluster),
            Step::Edit(change) => known(&change.cluster),
            Step::Remove(object) => known(&object.cluster),
            Step::Delete(_)
            | Step::Annotate(_)
            | Step::Approve(_)
            | Step::Reject(_)
            | Step::Advance(_)
            | Step::Polls(_)
            | Step::Check(_)
            | Step::Backup
            | Step::Restore(_)
            | Step::Stall
            | Step::Resume => Ok(()),
        }
    }
}

fn files(directory: &Path) -> Result<Vec<PathBuf>, ScenarioError> {
    let unreadable = |error: std::io::Error| ScenarioError {
        file: directory.display().to_string(),
        line: 1,
        reason: error.to_string(),
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn line_of(text: &str, field: &str) -> usize {
    text.lines().position(|line| line.starts_with(field)).map_or(1, |index| index + 1)
}

/// The line of a step: an item that is indented no further than the first one.
fn step_line(text: &str, wanted: usize) -> usize {
    let start = line_of(text, "steps:");
    let indent = |line: &str| line.len() - line.trim_start().len();
    let items = text.lines().enumerate().skip(start).filter(|(_, line)| line.trim_start().starts_with("- "));
    let first = items.clone().next().map_or(0, |(_, line)| indent(line));
    items.filter(|(_, line)| indent(line) == first).nth(wanted).map_or(start, |(index, _)| index + 1)
}
