//! What a run found as a page: one file, without scripts, readable in the dark too.

use std::fmt::Write;

use crate::exchange::Outcome;
use crate::expected::Expected;
use crate::generated::coverage::{Asked, Count};
use crate::generated::report::share;
use crate::generated::session::Found;

const STYLE: &str = "
:root { color-scheme: light dark; --good: light-dark(#1a7f37, #4ac26b); --bad: light-dark(#cf222e, #ff7b72); }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 90rem; margin: 2rem auto; padding: 0 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid light-dark(#d0d7de, #3d444d); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
td.none { opacity: .35; } small { opacity: .7; } .good { color: var(--good); } .bad { color: var(--bad); }
";

/// The whole page.
#[must_use]
pub fn page(outcomes: &[Outcome], expected: &Expected, found: &Found) -> String {
    let mut page = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width\"><title>Fidelity</title>\n");
    page.push_str(&format!("<style>{STYLE}</style></head><body>\n<h1>Fidelity of the simulated API server</h1>\n"));
    page.push_str(&totals(outcomes, expected, found));
    page.push_str(&coverage(found));
    page.push_str(&classes(found));
    page.push_str(&waivers(expected));
    page.push_str("</body></html>\n");
    page
}

fn totals(outcomes: &[Outcome], expected: &Expected, found: &Found) -> String {
    let steps: usize = outcomes.iter().map(|outcome| outcome.steps).sum();
    let differing: usize = outcomes.iter().map(|outcome| outcome.differences.len()).sum();
    let (count, waivers) = (found.coverage.total(), expected.waivers.len() + expected.generated.len());
    let unwaived: usize = found.classes.values().map(Vec::len).sum();
    let row = |name: &str, sequences: String, requests: String, success: String, differ: String| {
        format!("<tr><td>{name}<td>{sequences}<td>{requests}<td>{success}<td>{differ}\n")
    };
    let mut text = String::from("<table><tr><th>what<th>sequences<th>requests<th>with success<th>differences\n");
    let success = share(count.succeeded, count.asked);
    text += &row("generated", found.sequences.to_string(), count.asked.to_string(), success, count.differs.to_string());
    text += &row("recorded", outcomes.len().to_string(), steps.to_string(), String::new(), differing.to_string());
    let class = if unwaived == 0 { "good" } else { "bad" };
    text + &format!("</table>\n<p class={class}>{unwaived} sequences differ without a waiver; {waivers} waivers.</p>\n")
}

fn coverage(found: &Found) -> String {
    let verbs = found.coverage.verbs();
    let mut text = String::from(
        "<h2>Coverage</h2>\n<p>How often each verb was asked of each kind, how often with success, and where answers differ.</p>\n<div class=scroll><table><tr><th>kind",
    );
    verbs.iter().for_each(|verb| text.push_str(&format!("<th>{}", escaped(verb))));
    for kind in found.coverage.kinds() {
        let _infallible = write!(text, "\n<tr><td>{}", escaped(kind));
        for verb in &verbs {
            let asked = Asked { kind: kind.to_owned(), verb: (*verb).to_owned() };
            text.push_str(&cell(found.coverage.0.get(&asked).copied().unwrap_or_default()));
        }
    }
    text + "\n</table></div>\n"
}

fn cell(count: Count) -> String {
    if count.asked == 0 {
        return "<td class=none>·".to_owned();
    }
    let differs = if count.differs > 0 { format!(" <b class=bad>≠{}</b>", count.differs) } else { String::new() };
    format!("<td>{} <small>{}</small>{differs}", count.asked, share(count.succeeded, count.asked))
}

fn classes(found: &Found) -> String {
    let mut text = String::from("<h2>Differences</h2>\n");
    if found.classes.is_empty() {
        return text + "<p class=good>None without a waiver.</p>\n";
    }
    text.push_str("<table><tr><th>class<th>sequences<th>the first\n");
    for (class, examples) in &found.classes {
        let first = examples.first().copied().unwrap_or_default();
        let _infallible = writeln!(text, "<tr><td>{}<td>{}<td>{first}", escaped(&class.to_string()), examples.len());
    }
    text + "</table>\n"
}

fn waivers(expected: &Expected) -> String {
    let mut text = String::from("<h2>Waivers</h2>\n<table><tr><th>what<th>reason<th>differences\n");
    for waiver in &expected.generated {
        let (what, why, used) = (escaped(&waiver.pattern()), escaped(&waiver.reason), waiver.used.get());
        let _infallible = writeln!(text, "<tr><td>{what}<td>{why}<td>{used}");
    }
    for ((name, step), why) in &expected.waivers {
        let _infallible = writeln!(text, "<tr><td>{}, step {step}<td>{}<td>1", escaped(name), escaped(why));
    }
    text + "</table>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
