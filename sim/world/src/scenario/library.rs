//! All scenario files below a directory, read and checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sindri_model::yaml;
use thiserror::Error;

use super::document::Scenario;
use super::fleet::broker_name;
use super::step::{Await, BrokerRef, Step};

/// Directory of the scenarios in the project.
const DIRECTORY: &str = "scenarios";
/// Most brokers of a fleet; more show nothing that fewer do not.
const BROKERS_MAX: usize = 5;
/// Most processes of an agent, for the same reason.
const REPLICAS_MAX: usize = 5;
/// Deepest nesting of folders below the directory of the scenarios.
const FOLDER_DEPTH_MAX: usize = 4;

/// A scenario file that cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{file}:{line}: {reason}")]
pub struct ScenarioError {
    /// The file, relative to the project's directory; the whole path of a directory that cannot be read.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The reason.
    pub reason: String,
}

/// All scenarios, and the bundles that they use.
#[derive(Clone, Debug)]
pub struct Library {
    /// Scenarios in the order of their names.
    pub scenarios: Vec<Scenario>,
    bundles: PathBuf,
}

impl Library {
    /// Reads every file below `scenarios/` of the project's directory, and checks what can be checked before a run.
    pub fn read(root: &Path) -> Result<Self, Vec<ScenarioError>> {
        let files = list_files(&root.join(DIRECTORY), FOLDER_DEPTH_MAX).map_err(|error| vec![error])?;
        let mut library = Self { scenarios: Vec::new(), bundles: root.join("fixtures/bundles") };
        let mut errors = find_duplicates(root, &files);
        for path in files {
            let file = relative_path(root, &path);
            match library.read_file(&path) {
                Ok(scenario) => library.scenarios.push(scenario),
                Err((line, reason)) => errors.push(ScenarioError { file, line, reason }),
            }
        }
        library.scenarios.sort_by(|one, other| one.name.cmp(&other.name));
        if errors.is_empty() { Ok(library) } else { Err(errors) }
    }

    /// Creates a library without scenarios and bundles.
    pub fn empty() -> Self {
        Self { scenarios: Vec::new(), bundles: PathBuf::new() }
    }

    /// Finds a scenario by name.
    pub fn find(&self, name: &str) -> Option<&Scenario> {
        self.scenarios.iter().find(|scenario| scenario.name == name)
    }

    /// Reads a bundle.
    pub fn bundle(&self, name: &str) -> Result<String, String> {
        let path = self.bundles.join(name);
        std::fs::read_to_string(&path).map_err(|error| format!("bundle {name}: {error}"))
    }

    fn read_file(&self, path: &Path) -> Result<Scenario, (usize, String)> {
        let text = std::fs::read_to_string(path).map_err(|error| (1, error.to_string()))?;
        let mut scenario: Scenario = yaml::parse_into(&text).map_err(|error| (error.line, error.reason.clone()))?;
        scenario.name = stem(path);
        check_fleet(&scenario).map_err(|reason| (find_line(&text, "fleet"), reason))?;
        for (entry, step) in scenario.steps.iter() {
            self.check_step(&scenario, step).map_err(|reason| (find_step_line(&text, entry - 1), reason))?;
        }
        Ok(scenario)
    }

    fn check_step(&self, scenario: &Scenario, step: &Step) -> Result<(), String> {
        let check_agent = |name: &str| {
            let is_known = scenario.fleet.agents.iter().any(|agent| agent == name);
            if is_known { Ok(()) } else { Err(format!("the fleet has no agent {name:?}")) }
        };
        let check_host = |name: &str| {
            if scenario.fleet.has_host(name) { Ok(()) } else { Err(format!("the fleet has no host {name:?}")) }
        };
        let check_broker = |name: &str| {
            let is_known = (0..scenario.fleet.brokers).any(|index| broker_name(index) == name);
            if is_known { Ok(()) } else { Err(format!("the fleet has no broker {name:?}")) }
        };
        match step {
            Step::Submit(submit) => match (&submit.bundle, &submit.yaml) {
                (Some(bundle), None) => self.bundle(bundle).map(drop),
                (None, Some(_)) => Ok(()),
                _ => Err("submit takes either a bundle or a yaml".to_owned()),
            },
            Step::Propose(propose) => {
                let found = match (&propose.bundle, &propose.yaml) {
                    (Some(bundle), None) => self.bundle(bundle).map(drop),
                    (None, Some(_)) => Ok(()),
                    _ => Err("propose takes either a bundle or a yaml".to_owned()),
                };
                found.and_then(|()| propose.agent.as_deref().map_or(Ok(()), check_agent))
            }
            Step::Target(target) | Step::Untarget(target) => check_agent(&target.agent),
            Step::Activate(activation) => check_agent(&activation.agent),
            Step::DeleteAgent(agent) | Step::CreateAgent(agent) => check_agent(&agent.agent),
            Step::Label(target) | Step::Unlabel(target) => check_agent(&target.agent),
            Step::Await(condition) => {
                check_await(condition)?;
                condition.agent.as_deref().map_or(Ok(()), check_agent)
            }
            Step::Partition(link) | Step::Repair(link) => link.between.iter().try_for_each(|name| check_host(name)),
            Step::Latency(latency) => latency.between.iter().try_for_each(|name| check_host(name)),
            Step::Kill(name) | Step::Restart(name) | Step::Pause(name) | Step::Continue(name) => check_host(name),
            Step::StallFor(BrokerRef { broker }) | Step::ResumeFor(BrokerRef { broker }) => check_broker(broker),
            Step::Quiet(quiet) => check_agent(&quiet.cluster),
            Step::Fail(fault) => check_agent(&fault.cluster),
            Step::Heal(cluster) | Step::SnapshotEtcd(cluster) | Step::RestoreEtcd(cluster) => {
                check_agent(&cluster.cluster)
            }
            Step::Create(create) => check_agent(&create.cluster),
            Step::Edit(edit) => check_agent(&edit.cluster),
            Step::Remove(object) => check_agent(&object.cluster),
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

fn check_fleet(scenario: &Scenario) -> Result<(), String> {
    let fleet = &scenario.fleet;
    if !(1..=BROKERS_MAX).contains(&fleet.brokers) {
        return Err(format!("a fleet has 1 to {BROKERS_MAX} brokers"));
    }
    let limits = &fleet.limits;
    let least = [limits.inventory_chunk_entries, limits.list_page, limits.requests_in_flight, limits.passes];
    if least.contains(&0) {
        return Err("a limit is at least 1".to_owned());
    }
    if !(1..=REPLICAS_MAX).contains(&fleet.replicas) {
        return Err(format!("an agent has 1 to {REPLICAS_MAX} processes"));
    }
    if fleet.agents.is_empty() {
        return Err("a fleet has at least one agent".to_owned());
    }
    Ok(())
}

fn check_await(condition: &Await) -> Result<(), String> {
    let given =
        [condition.applied.is_some(), condition.gone, condition.failed.is_some(), condition.condition.is_some()];
    if given.into_iter().filter(|is_given| *is_given).count() == 1 {
        return Ok(());
    }
    Err("await takes exactly one of applied, gone, failed and condition".to_owned())
}

/// Lists the `*.yaml` files of a directory and its folders, in the order of their paths.
fn list_files(directory: &Path, depth: usize) -> Result<Vec<PathBuf>, ScenarioError> {
    let fail = |reason: String| ScenarioError { file: directory.display().to_string(), line: 1, reason };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(|error| fail(error.to_string()))? {
        let path = entry.map_err(|error| fail(error.to_string()))?.path();
        if path.is_dir() {
            if depth == 0 {
                return Err(fail(format!("folders are nested deeper than {FOLDER_DEPTH_MAX}")));
            }
            files.extend(list_files(&path, depth - 1)?);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        } else {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            return Err(fail(format!("{name} is not a scenario: their names end in .yaml")));
        }
    }
    if files.is_empty() {
        return Err(fail("there is no scenario".to_owned()));
    }
    files.sort();
    Ok(files)
}

/// Reports each file whose name another folder has too: the name of a scenario is the name of its file.
fn find_duplicates(root: &Path, files: &[PathBuf]) -> Vec<ScenarioError> {
    let mut seen: BTreeMap<String, &PathBuf> = BTreeMap::new();
    let mut errors = Vec::new();
    for path in files {
        if let Some(first) = seen.insert(stem(path), path) {
            let reason = format!("the name {:?} is taken by {}", stem(path), relative_path(root, first));
            errors.push(ScenarioError { file: relative_path(root, path), line: 1, reason });
        }
    }
    errors
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn relative_path(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

fn find_line(text: &str, field: &str) -> usize {
    text.lines().position(|line| line.starts_with(field)).map_or(1, |index| index + 1)
}

/// Returns the line of an entry of `steps`: an item that is indented no further than the first one.
fn find_step_line(text: &str, index: usize) -> usize {
    let start = find_line(text, "steps:");
    let indent = |line: &str| line.len() - line.trim_start().len();
    let items = text.lines().enumerate().skip(start).filter(|(_, line)| line.trim_start().starts_with("- "));
    let first = items.clone().next().map_or(0, |(_, line)| indent(line));
    items.filter(|(_, line)| indent(line) == first).nth(index).map_or(start, |(index, _)| index + 1)
}
