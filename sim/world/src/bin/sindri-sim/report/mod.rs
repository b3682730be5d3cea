//! One self-contained HTML page about runs: figures of all of them, and the timeline of each failing one.

mod timeline;

use std::path::Path;

use serde::Serialize;

pub use self::timeline::NamedRun;
use self::timeline::Timeline;

/// Most failing runs whose timeline is in the page.
const FAILED_MAX: usize = 10;

/// A table of names and numbers.
#[derive(Serialize)]
pub struct Table {
    pub title: &'static str,
    /// The first text of each row is its name.
    pub rows: Vec<Vec<String>>,
}

/// Runs and figures of a page.
#[derive(Default)]
pub struct Report {
    failed: Vec<Timeline>,
    /// The first run in which every property held; shown if none failed.
    first: Option<Timeline>,
    tables: Vec<Table>,
}

#[derive(Serialize)]
struct Page<'a> {
    title: &'a str,
    summary: &'a str,
    tables: &'a [Table],
    runs: Vec<&'a Timeline>,
}

impl Report {
    /// Adds a run. Only some are kept.
    pub fn add_run(&mut self, run: NamedRun<'_>) {
        if run.report.violation.is_some() {
            if self.failed.len() < FAILED_MAX {
                self.failed.push(Timeline::new(run));
            }
        } else if self.first.is_none() {
            self.first = Some(Timeline::new(run));
        }
    }

    /// Adds a table with figures.
    pub fn add_table(&mut self, table: Table) {
        self.tables.push(table);
    }

    /// Adds the runs and figures of another report.
    pub fn extend(&mut self, other: Self) {
        self.failed.extend(other.failed);
        self.first = self.first.take().or(other.first);
        self.tables.extend(other.tables);
    }

    /// Writes the page.
    pub fn write(&self, file: &Path, title: &str, summary: &str) -> Result<(), String> {
        let shown = if self.failed.is_empty() { self.first.iter().collect() } else { self.failed.iter().collect() };
        let page = render(&Page { title, summary, tables: &self.tables, runs: shown });
        std::fs::write(file, page).map_err(|error| format!("{}: {error}", file.display()))
    }
}

fn render(page: &Page<'_>) -> String {
    // In a script element, `<` could begin the end of the element.
    let data = serde_json::to_string(page).expect("its keys are strings").replace('<', "\\u003c");
    include_str!("page.html")
        .replace("{{style}}", include_str!("page.css"))
        .replace("{{script}}", include_str!("page.js"))
        .replace("{{data}}", &data)
}

#[cfg(test)]
mod tests {
    use sindri_world::oracle::Violation;
    use sindri_world::run::RunReport;

    use super::*;

    fn run(trace: &[&str], oracle: Option<&'static str>) -> RunReport {
        let violation = oracle.map(|oracle| Violation { oracle, message: "</script>".to_owned() });
        RunReport { violation, trace: trace.iter().map(|line| (*line).to_owned()).collect(), ..RunReport::default() }
    }

    fn named<'a>(name: &str, report: &'a RunReport) -> NamedRun<'a> {
        NamedRun { name: name.to_owned(), replay: "replay".to_owned(), story: "story".to_owned(), report }
    }

    fn write(report: &Report) -> serde_json::Value {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("report.html");
        report.write(&file, "title", "summary").unwrap();
        let page = std::fs::read_to_string(file).unwrap();
        assert!(!page.contains("{{") && page.contains("--violation"), "{page}");
        let (_, rest) = page.split_once("type=\"application/json\">").unwrap();
        serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
    }

    #[test]
    fn failing_runs_are_shown_and_a_good_one_only_if_none_failed() {
        let (good, bad) = (run(&[], None), run(&[], Some("no-leak")));
        let mut report = Report::default();
        report.add_run(named("good", &good));
        report.add_run(named("other", &good));
        assert_eq!(write(&report)["runs"].as_array().unwrap().len(), 1);
        report.add_run(named("bad", &bad));
        let page = write(&report);
        assert_eq!(page["runs"][0]["name"], "bad");
        assert_eq!(page["runs"][0]["violation"]["message"], "</script>", "a text of a run does not end the data");
        assert_eq!(page["runs"].as_array().unwrap().len(), 1);
    }
}
