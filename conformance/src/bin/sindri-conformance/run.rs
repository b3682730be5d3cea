//! `run`: runs the suite and reports the results.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::ScopedJoinHandle;

use sindri_cluster::ProviderName;
use sindri_cluster::program::{ExitReason, print_line};
use sindri_conformance::binaries::Binaries;
use sindri_conformance::providers::{create_provider, parse_provider};
use sindri_conformance::report;
use sindri_conformance::suite::{self, Case, Outcome};
use sindri_world::scenario::{Library, Scenario};

use crate::flags::RunFlags;
use crate::setup::{create_runtime, find_binaries};

pub fn run(flags: &RunFlags) -> Result<(), ExitReason> {
    let name = provider_name(flags.cluster.as_deref())?;
    let library = read_library(&flags.root)?;
    let chosen = suite::choose(&library, &flags.filter);
    if chosen.is_empty() {
        return Err(nothing_chosen(flags));
    }
    if flags.list {
        chosen.into_iter().for_each(list);
        return Ok(());
    }
    // Checked first, so that a mistake is reported before a scenario runs.
    let binaries = find_binaries()?;
    create_provider(name, &binaries)?;
    let (json, junit) = (OutputFile::create(flags.json.as_deref())?, OutputFile::create(flags.junit.as_deref())?);
    let default = if flags.cluster.is_none() { " (default)" } else { "" };
    let scenarios = if chosen.len() == 1 { "scenario" } else { "scenarios" };
    print_line(format!("{} {scenarios} on cluster {name}{default}", chosen.len()));
    let jobs = usize::try_from(flags.jobs).unwrap_or(1).min(chosen.len());
    let cases = run_all(&chosen, &Setup { library: &library, name, binaries: &binaries }, jobs)?;
    let not_run = find_unavailable(&cases);
    if not_run.is_none() {
        print_line(report::summary(&cases));
    }
    json.write(&format!("{:#}\n", report::to_json(name, &cases)))?;
    junit.write(&report::to_junit(name, &cases))?;
    match not_run {
        Some(why) => Err(ExitReason::Unavailable(why)),
        None if report::failures(&cases) == 0 => Ok(()),
        None => Err(ExitReason::AlreadyReported),
    }
}

/// Parts that every scenario needs.
struct Setup<'a> {
    library: &'a Library,
    name: ProviderName,
    binaries: &'a Binaries,
}

/// Runs the scenarios on some threads and prints each result as it arrives. The results are in the order of the scenarios.
fn run_all(chosen: &[&Scenario], setup: &Setup<'_>, jobs: usize) -> Result<Vec<Case>, ExitReason> {
    let (next, is_stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let take_next = || match is_stopped.load(Ordering::Relaxed) {
        true => None,
        false => Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < chosen.len()),
    };
    let mut cases: Vec<(usize, Case)> = Vec::new();
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        let workers: Vec<_> = (0..jobs)
            .map(|_| {
                let (sender, take_next) = (sender.clone(), &take_next);
                scope.spawn(move || run_some(chosen, setup, take_next, &sender))
            })
            .collect();
        drop(sender);
        for (index, case) in receiver {
            print_line(report::format_case(&case));
            cases.push((index, case));
            let has_no_cluster = cases.iter().all(|(_, case)| matches!(case.outcome, Outcome::NotRun(_)));
            is_stopped.fetch_or(has_no_cluster, Ordering::Relaxed);
        }
        workers.into_iter().try_for_each(join)
    })?;
    cases.sort_by_key(|(index, _)| *index);
    Ok(cases.into_iter().map(|(_, case)| case).collect())
}

/// Runs scenarios one after another on the current thread, until there are none left or a signal arrives.
fn run_some(
    chosen: &[&Scenario],
    setup: &Setup<'_>,
    take_next: &dyn Fn() -> Option<usize>,
    results: &mpsc::Sender<(usize, Case)>,
) -> Result<(), ExitReason> {
    let (runtime, provider) = (create_runtime()?, create_provider(setup.name, setup.binaries)?);
    while let Some(index) = take_next() {
        let case = suite::run(chosen[index], setup.library, &*provider, setup.binaries, &runtime);
        if let Some(code) = runtime.interrupt_code() {
            return Err(ExitReason::Interrupted(code));
        }
        // The receiver lives until every sender is dropped.
        let _sent = results.send((index, case));
    }
    Ok(())
}

fn join(worker: ScopedJoinHandle<'_, Result<(), ExitReason>>) -> Result<(), ExitReason> {
    worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// If no scenario got a cluster, returns why: none can. If only some got none, that is a failure of these.
fn find_unavailable(cases: &[Case]) -> Option<String> {
    let reasons = cases.iter().map(|case| match &case.outcome {
        Outcome::NotRun(why) => Some(why.clone()),
        _ => None,
    });
    reasons.collect::<Option<Vec<_>>>()?.into_iter().next()
}

fn nothing_chosen(flags: &RunFlags) -> ExitReason {
    let (filter, root) = (&flags.filter, flags.root.display());
    ExitReason::Usage(match filter.as_str() {
        "" => format!("no scenario in {root}/scenarios is marked real: true"),
        filter => {
            format!("no scenario in {root}/scenarios that is marked real: true has {filter:?} in its name or title")
        }
    })
}

fn provider_name(flag: Option<&str>) -> Result<ProviderName, ExitReason> {
    flag.map_or(Ok(ProviderName::Sim), parse_provider)
}

fn read_library(root: &Path) -> Result<Library, ExitReason> {
    Library::read(root).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        ExitReason::Usage(lines.join("\n"))
    })
}

fn list(scenario: &Scenario) {
    print_line(format!("{}  {}  {}", scenario.name, scenario.proves.join(" "), scenario.title));
}

/// Output file that is written at the end, if it was given.
struct OutputFile(Option<(PathBuf, File)>);

impl OutputFile {
    fn create(path: Option<&Path>) -> Result<Self, ExitReason> {
        let Some(path) = path else { return Ok(Self(None)) };
        let file = File::create(path).map_err(|error| unwritable(path, &error))?;
        Ok(Self(Some((path.to_owned(), file))))
    }

    fn write(self, text: &str) -> Result<(), ExitReason> {
        let Some((path, mut file)) = self.0 else { return Ok(()) };
        file.write_all(text.as_bytes()).map_err(|error| unwritable(&path, &error))
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> ExitReason {
    ExitReason::Usage(format!("{} cannot be written: {error}", path.display()))
}
