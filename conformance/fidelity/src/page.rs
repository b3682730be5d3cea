//! HTML page with the results of a run: one file without scripts, with a dark mode.

use std::fmt::Write;

use crate::exchange::ExchangeResult;
use crate::expected::Expected;
use crate::generated::coverage::{Count, ResourceVerb};
use crate::generated::session::RunResult;
use crate::generated_report::share;

const STYLE: &str = "
:root { color-scheme: light dark; --good: light-dark(#1a7f37, #4ac26b); --bad: light-dark(#cf222e, #ff7b72); }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 90rem; margin: 2rem auto; padding: 0 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid light-dark(#d0d7de, #3d444d); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
td.none { opacity: .35; } small { opacity: .7; } .good { color: var(--good); } .bad { color: var(--bad); }
";

/// Renders the page.
#[must_use]
pub fn render(outcomes: &[ExchangeResult], expected: &Expected, result: &RunResult) -> String {
    let mut page = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width\"><title>Fidelity</title>\n");
    page.push_str(&format!("<style>{STYLE}</style></head><body>\n<h1>Fidelity of the simulated API server</h1>\n"));
    page.push_str(&totals(outcomes, expected, result));
    page.push_str(&coverage(result));
    page.push_str(&classes(result));
    page.push_str(&waivers(expected));
    page.push_str("</body></html>\n");
    page
}

fn totals(outcomes: &[ExchangeResult], expected: &Expected, result: &RunResult) -> String {
    let steps: usize = outcomes.iter().map(|outcome| outcome.steps).sum();
    let differing: usize = outcomes.iter().map(|outcome| outcome.differences.len()).sum();
    let (count, waivers) = (result.coverage.total(), expected.waivers.len() + expected.generated.len());
    let unwaived: usize = result.classes.values().map(Vec::len).sum();
    let row = |name: &str, sequences: String, requests: String, success: String, differ: String| {
        format!("<tr><td>{name}<td>{sequences}<td>{requests}<td>{success}<td>{differ}\n")
    };
    let mut text = String::from("<table><tr><th>what<th>sequences<th>requests<th>with success<th>differences\n");
    let success = share(count.succeeded, count.requests);
    text +=
        &row("generated", result.sequences.to_string(), count.requests.to_string(), success, count.differs.to_string());
    text += &row("recorded", outcomes.len().to_string(), steps.to_string(), String::new(), differing.to_string());
    let class = if unwaived == 0 { "good" } else { "bad" };
    text + &format!("</table>\n<p class={class}>{unwaived} sequences differ without a waiver; {waivers} waivers.</p>\n")
}

fn coverage(result: &RunResult) -> String {
    let verbs = result.coverage.verbs();
    let mut text = String::from(
        "<h2>Coverage</h2>\n<p>Requests by resource and verb, with the share of successes and the number of differing responses.</p>\n<div class=scroll><table><tr><th>kind",
    );
    verbs.iter().for_each(|verb| text.push_str(&format!("<th>{}", escape(verb))));
    for resource in result.coverage.resources() {
        let _infallible = write!(text, "\n<tr><td>{}", escape(resource));
        for verb in &verbs {
            let key = ResourceVerb { resource: resource.to_owned(), verb: (*verb).to_owned() };
            text.push_str(&cell(result.coverage.0.get(&key).copied().unwrap_or_default()));
        }
    }
    text + "\n</table></div>\n"
}

fn cell(count: Count) -> String {
    if count.requests == 0 {
        return "<td class=none>·".to_owned();
    }
    let differs = if count.differs > 0 { format!(" <b class=bad>≠{}</b>", count.differs) } else { String::new() };
    format!("<td>{} <small>{}</small>{differs}", count.requests, share(count.succeeded, count.requests))
}

fn classes(result: &RunResult) -> String {
    let mut text = String::from("<h2>Differences</h2>\n");
    if result.classes.is_empty() {
        return text + "<p class=good>None without a waiver.</p>\n";
    }
    text.push_str("<table><tr><th>class<th>sequences<th>the first\n");
    for (class, examples) in &result.classes {
        let first = examples.first().copied().unwrap_or_default();
        let _infallible = writeln!(text, "<tr><td>{}<td>{}<td>{first}", escape(&class.to_string()), examples.len());
    }
    text + "</table>\n"
}

fn waivers(expected: &Expected) -> String {
    let mut text = String::from("<h2>Waivers</h2>\n<table><tr><th>what<th>reason<th>differences\n");
    for waiver in &expected.generated {
        let (pattern, reason, used) = (escape(&waiver.pattern()), escape(&waiver.reason), waiver.used.get());
        let _infallible = writeln!(text, "<tr><td>{pattern}<td>{reason}<td>{used}");
    }
    for ((name, step), why) in &expected.waivers {
        let _infallible = writeln!(text, "<tr><td>{}, step {step}<td>{}<td>1", escape(name), escape(why));
    }
    text + "</table>\n"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
