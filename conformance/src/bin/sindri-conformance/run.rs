//! `run`: runs the suite and reports the results.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use sindri_cluster::ProviderName;
use sindri_cluster::program::{ExitReason, print_line};
use sindri_conformance::providers::{create_provider, parse_provider};
use sindri_conformance::report;
use sindri_conformance::suite::{self, Outcome};
use sindri_world::scenario::{Library, Scenario};

use crate::{RunFlags, prepare};

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
    let (binaries, runtime) = prepare()?;
    let provider = create_provider(name, &binaries)?;
    // Created first, so that a path that cannot be written is reported before the suite runs.
    let (json, junit) = (OutputFile::create(flags.json.as_deref())?, OutputFile::create(flags.junit.as_deref())?);
    let default = if flags.cluster.is_none() { " (default)" } else { "" };
    let scenarios = if chosen.len() == 1 { "scenario" } else { "scenarios" };
    print_line(format!("{} {scenarios} on cluster {name}{default}", chosen.len()));
    let (mut cases, mut not_run) = (Vec::new(), None);
    for scenario in chosen {
        let case = suite::run(scenario, &library, &*provider, &binaries, &runtime);
        if let Some(code) = runtime.interrupt_code() {
            return Err(ExitReason::Interrupted(code));
        }
        if let (true, Outcome::NotRun(why)) = (cases.is_empty(), &case.outcome) {
            not_run = Some(why.clone());
        }
        print_line(report::format_case(&case));
        cases.push(case);
        if not_run.is_some() {
            break;
        }
    }
    if not_run.is_none() {
        print_line(report::summary(&cases));
    }
    json.write(&format!("{:#}\n", report::to_json(name, &cases)))?;
    junit.write(&report::to_junit(name, &cases))?;
    match not_run {
        // If the first scenario gets no cluster, none does; if a later one gets none, it is a failure.
        Some(why) => Err(ExitReason::Unavailable(why)),
        None if report::failures(&cases) == 0 => Ok(()),
        None => Err(ExitReason::AlreadyReported),
    }
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
