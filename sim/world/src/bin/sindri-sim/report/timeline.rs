//! The trace of one run as data of the page.

use serde::Serialize;
use sindri_world::run::RunReport;

/// Most lines of a trace in the page: its last ones.
const LINES_MAX: usize = 30_000;

/// A run by its name, the command that repeats it, and the text of its scenario.
pub struct NamedRun<'a> {
    pub name: String,
    pub replay: String,
    pub story: String,
    pub report: &'a RunReport,
}

/// One run.
#[derive(Serialize)]
pub struct Timeline {
    name: String,
    replay: String,
    story: String,
    violation: Option<ViolationText>,
    /// Hosts in the order of their lanes: the world first, then by name.
    hosts: Vec<String>,
    /// Milliseconds, index of the host, kind and text of each line.
    lines: Vec<(u64, usize, char, String)>,
    /// Number of lines that were left out at the beginning.
    omitted: usize,
}

#[derive(Serialize)]
struct ViolationText {
    oracle: &'static str,
    message: String,
}

impl Timeline {
    /// Parses the trace of a run.
    pub fn new(NamedRun { name, replay, story, report }: NamedRun<'_>) -> Self {
        let omitted = report.trace.len().saturating_sub(LINES_MAX);
        let lines: Vec<Line<'_>> = report.trace[omitted..].iter().filter_map(|line| Line::parse(line)).collect();
        let mut hosts: Vec<String> = lines.iter().map(|line| line.host.to_owned()).collect();
        hosts.sort_by_key(|host| (host != "world", host.clone()));
        hosts.dedup();
        let index = |host: &str| hosts.iter().position(|known| known == host).unwrap_or_default();
        let lines = lines.iter().map(|line| (line.millis, index(line.host), line.kind, line.text.to_owned())).collect();
        let violation =
            report.violation.clone().map(|found| ViolationText { oracle: found.oracle, message: found.message });
        Self { name, replay, story, violation, hosts, lines, omitted }
    }
}

/// One line of a trace.
#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    millis: u64,
    host: &'a str,
    /// Mark of the line; see [`sindri_world::trace`].
    kind: char,
    text: &'a str,
}

impl<'a> Line<'a> {
    /// Parses `t+00:31.204 e00412  east       > applied`; none for a line of another form.
    fn parse(line: &'a str) -> Option<Self> {
        let (time, rest) = line.strip_prefix("t+")?.split_once(' ')?;
        let (_number, rest) = rest.split_once("  ")?;
        let (host, rest) = rest.split_once(' ')?;
        let rest = rest.trim_start();
        let mut characters = rest.chars();
        let kind = characters.next()?;
        let (minutes, seconds) = time.split_once(':')?;
        let (seconds, millis) = seconds.split_once('.')?;
        let number = |text: &str| text.parse::<u64>().ok();
        let millis = (number(minutes)? * 60 + number(seconds)?) * 1_000 + number(millis)?;
        Some(Self { millis, host, kind, text: characters.as_str().trim_start() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_trace_is_parsed() {
        let line = Line::parse("t+10:31.260 e00416  east-api   = delete Service shop/web by sindri-agent at 57");
        let text = "delete Service shop/web by sindri-agent at 57";
        assert_eq!(line, Some(Line { millis: 631_260, host: "east-api", kind: '=', text }));
        let line = Line::parse("t+100:00.001 e123456  a-host-with-a-long-name ~ kill east").unwrap();
        assert_eq!((line.millis, line.host, line.text), (6_000_001, "a-host-with-a-long-name", "kill east"));
        assert_eq!(Line::parse("anything else"), None);
    }

    #[test]
    fn the_last_lines_are_kept_and_the_world_is_the_first_lane() {
        let trace = (0..LINES_MAX + 5).map(|number| {
            let host = if number % 2 == 0 { "east" } else { "world" };
            format!("t+00:00.{:03} e{number:05}  {host:<10} > {number}", number % 1_000)
        });
        let report = RunReport { trace: trace.collect(), ..RunReport::default() };
        let run = NamedRun { name: String::new(), replay: String::new(), story: String::new(), report: &report };
        let timeline = Timeline::new(run);
        assert_eq!((timeline.omitted, timeline.lines.len()), (5, LINES_MAX));
        assert_eq!(timeline.hosts, ["world", "east"]);
        assert_eq!(timeline.lines[0], (5, 0, '>', "5".to_owned()));
    }
}
