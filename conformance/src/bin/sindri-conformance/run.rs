//! `run`: plays the suite and reports.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use sindri_cluster::ProviderName;
use sindri_cluster::program::{Ending, say};
use sindri_conformance::providers::{create_provider, parse_provider};
use sindri_conformance::report;
use sindri_conformance::suite::{self, Outcome};
use sindri_world::scenario::{Library, Scenario};

use crate::{RunFlags, prepare};

pub fn run(flags: &RunFlags) -> Result<(), Ending> {
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
    let (binaries, waiter) = prepare()?;
    let provider = create_provider(name, &binaries)?;
    // Opened first: a path that cannot be written is found before the suite has run.
    let (json, junit) = (Document::create(flags.json.as_deref())?, Document::create(flags.junit.as_deref())?);
    let default = if flags.cluster.is_none() { " (no --cluster was given)" } else { "" };
    let stories = if chosen.len() == 1 { "story" } else { "stories" };
    say(format!("{} {stories} on cluster {name}{default}", chosen.len()));
    let (mut cases, mut not_run) = (Vec::new(), None);
    for scenario in chosen {
        let case = suite::play(scenario, &library, &*provider, &binaries, &waiter);
        if let Some(code) = waiter.interrupted() {
            return Err(Ending::Interrupted(code));
        }
        if let (true, Outcome::NotRun(why)) = (cases.is_empty(), &case.outcome) {
            not_run = Some(why.clone());
        }
        say(report::line(&case));
        cases.push(case);
        if not_run.is_some() {
            break;
        }
    }
    if not_run.is_none() {
        say(report::summary(&cases));
    }
    json.write(&format!("{:#}\n", report::to_json(name, &cases)))?;
    junit.write(&report::to_junit(name, &cases))?;
    match not_run {
        // Where the first has no cluster, none has; where a later one has none, something broke.
        Some(why) => Err(Ending::NotRun(why)),
        None if report::failures(&cases) == 0 => Ok(()),
        None => Err(Ending::Told),
    }
}

fn nothing_chosen(flags: &RunFlags) -> Ending {
    let (filter, root) = (&flags.filter, flags.root.display());
    Ending::Mistake(match filter.as_str() {
        "" => format!("no story in {root}/scenarios is marked real: true"),
        filter => format!("no story in {root}/scenarios that is marked real: true has {filter:?} in its name or title"),
    })
}

fn provider_name(wanted: Option<&str>) -> Result<ProviderName, Ending> {
    wanted.map_or(Ok(ProviderName::Sim), parse_provider)
}

fn read_library(root: &Path) -> Result<Library, Ending> {
    Library::read(root).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Ending::Mistake(lines.join("\n"))
    })
}

fn list(scenario: &Scenario) {
    say(format!("{}  {}  {}", scenario.name, scenario.proves.join(" "), scenario.title));
}

/// A file that is written at the end, if it is wanted.
struct Document(Option<(PathBuf, File)>);

impl Document {
    fn create(path: Option<&Path>) -> Result<Self, Ending> {
        let Some(path) = path else { return Ok(Self(None)) };
        let file = File::create(path).map_err(|error| unwritable(path, &error))?;
        Ok(Self(Some((path.to_owned(), file))))
    }

    fn write(self, text: &str) -> Result<(), Ending> {
        let Some((path, mut file)) = self.0 else { return Ok(()) };
        file.write_all(text.as_bytes()).map_err(|error| unwritable(&path, &error))
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Ending {
    Ending::Mistake(format!("{} cannot be written: {error}", path.display()))
}
