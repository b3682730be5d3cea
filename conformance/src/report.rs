//! Report of a run: a line for each case, JSON, and JUnit's XML.

use std::fmt::Write as _;

use serde_json::{Value, json};
use sindri_cluster::ProviderName;

use crate::suite::{Case, Outcome};

/// Formats a case as a line, with the reason and the logs if it did not pass.
pub fn format_case(case: &Case) -> String {
    let (result, reason) = result_and_reason(&case.outcome);
    let mut text = format!("{result:<12}  {:>6.2} s  {}  {}", seconds(case), case.name, case.behaviours.join(" "));
    for reason in reason.iter().flat_map(|reason| reason.lines()) {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n    {reason}");
    }
    if !case.logs.is_empty() {
        let _ = write!(text, "\n{}", case.logs.trim_end());
    }
    text
}

/// Returns the last line of a run.
pub fn summary(cases: &[Case]) -> String {
    let (failed, skipped) = (failures(cases), skipped(cases));
    let counts = format!("{} passed, {failed} failed", cases.len() - failed - skipped);
    if skipped == 0 { counts } else { format!("{counts}, {skipped} skipped on this provider") }
}

/// Returns the number of cases that failed or could not run, without skipped ones.
pub fn failures(cases: &[Case]) -> usize {
    cases.len() - cases.iter().filter(|case| case.outcome.is_passed()).count() - skipped(cases)
}

fn skipped(cases: &[Case]) -> usize {
    cases.iter().filter(|case| matches!(case.outcome, Outcome::NotHere(_))).count()
}

/// Converts the run to JSON.
pub fn to_json(provider: ProviderName, cases: &[Case]) -> Value {
    let cases: Vec<Value> = cases
        .iter()
        .map(|case| {
            let (result, reason) = result_and_reason(&case.outcome);
            json!({
                "name": case.name, "behaviours": case.behaviours, "result": result,
                "seconds": seconds(case), "reason": reason,
            })
        })
        .collect();
    json!({"provider": provider.to_string(), "cases": cases})
}

/// Converts the run to JUnit's XML, which most CI servers read.
pub fn to_junit(provider: ProviderName, cases: &[Case]) -> String {
    let time: f64 = cases.iter().map(seconds).sum();
    let (failed, skipped) = (failures(cases), skipped(cases));
    let counts = format!("tests=\"{}\" failures=\"{failed}\" skipped=\"{skipped}\" time=\"{time:.3}\"", cases.len());
    let mut xml = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n");
    xml.push_str(&format!("  <testsuite name=\"conformance on {provider}\" {counts}>\n"));
    for case in cases {
        xml.push_str(&junit_case(provider, case));
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn junit_case(provider: ProviderName, case: &Case) -> String {
    let head = format!(
        "    <testcase classname=\"conformance.{provider}\" name=\"{}\" time=\"{:.3}\"",
        escape(&case.name),
        seconds(case)
    );
    match (&case.outcome, result_and_reason(&case.outcome)) {
        (_, (_, None)) => format!("{head}/>\n"),
        (Outcome::NotHere(reason), _) => {
            format!("{head}>\n      <skipped message=\"{}\"/>\n    </testcase>\n", escape(reason))
        }
        (_, (result, Some(reason))) => format!(
            "{head}>\n      <failure type=\"{result}\" message=\"{}\">{}</failure>\n    </testcase>\n",
            escape(reason),
            escape(&case.logs)
        ),
    }
}

fn result_and_reason(outcome: &Outcome) -> (&'static str, Option<&str>) {
    match outcome {
        Outcome::Passed => ("passed", None),
        Outcome::Failed(reason) => ("failed", Some(reason)),
        Outcome::NotRunnable(reason) => ("not-runnable", Some(reason)),
        Outcome::NotHere(reason) => ("not-here", Some(reason)),
        Outcome::NotRun(reason) => ("not-run", Some(reason)),
    }
}

fn seconds(case: &Case) -> f64 {
    (case.took.as_secs_f64() * 1000.0).round() / 1000.0
}

/// Escapes text. Control characters are replaced, because XML cannot represent most of them.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(character),
            other if other.is_control() || matches!(other, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn case(outcome: Outcome) -> Case {
        let behaviours = vec!["GUIDE-01".to_owned()];
        Case { name: "shop".into(), behaviours, outcome, took: Duration::from_millis(1234), logs: String::new() }
    }

    #[test]
    fn a_case_that_is_not_runnable_counts_as_failed() {
        let cases = [case(Outcome::Passed), case(Outcome::NotRunnable("cannot fly here".into()))];
        assert_eq!(summary(&cases), "1 passed, 1 failed");
        assert_eq!(format_case(&cases[0]), "passed          1.23 s  shop  GUIDE-01");
        assert_eq!(format_case(&cases[1]), "not-runnable    1.23 s  shop  GUIDE-01\n    cannot fly here");
    }

    #[test]
    fn a_case_that_the_provider_does_not_support_is_skipped_and_no_failure() {
        let cases = [case(Outcome::Passed), case(Outcome::NotHere("no route to it".into()))];
        assert_eq!((failures(&cases), summary(&cases)), (0, "1 passed, 0 failed, 1 skipped on this provider".into()));
        assert_eq!(format_case(&cases[1]), "not-here        1.23 s  shop  GUIDE-01\n    no route to it");
        let xml = to_junit(ProviderName::Kind, &cases);
        assert!(xml.contains("failures=\"0\" skipped=\"1\""), "{xml}");
        assert!(xml.contains("<skipped message=\"no route to it\"/>"), "{xml}");
    }

    #[test]
    fn json_has_one_entry_for_each_case() {
        let cases = [case(Outcome::Passed), case(Outcome::Failed("no".into()))];
        let passed = json!({
            "name": "shop", "behaviours": ["GUIDE-01"], "result": "passed", "seconds": 1.234, "reason": null,
        });
        let document = to_json(ProviderName::Sim, &cases);
        assert_eq!(document["provider"], "sim");
        assert_eq!(document["cases"][0], passed);
        assert_eq!(document["cases"][1]["reason"], "no");
    }

    #[test]
    fn junit_escapes_what_xml_cannot_represent() {
        let xml = to_junit(ProviderName::Sim, &[case(Outcome::Failed("\"a\" < b & \u{1b}[1m".into()))]);
        assert!(xml.contains("message=\"&quot;a&quot; &lt; b &amp; \u{fffd}[1m\""), "{xml}");
        assert!(xml.contains("<testsuites tests=\"1\" failures=\"1\" skipped=\"0\" time=\"1.234\">"), "{xml}");
    }
}
