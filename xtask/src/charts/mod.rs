//! The charts of `deploy/`, rendered with a real helm: compared with the files of the project that are made from them, and
//! checked value by value.
//!
//! `UPDATE=1 cargo xtask test --part charts` writes these files again.

mod cases;
mod chart;
mod generated;
mod helm;
mod keys_script;
mod settings;
mod values;

use std::path::PathBuf;

use crate::counts::Counts;

use chart::{BROKER, CHARTS};
use helm::Helm;

/// Returns the path of helm, which is built if it is not in the cache. The inner error is the reason why it cannot run here.
pub fn prepare_helm() -> Result<Result<PathBuf, &'static str>, String> {
    Ok(Helm::prepare()?.map(|helm| helm.program()))
}

/// Runs every check. They are skipped without Go, or if helm cannot be built.
pub fn test() -> Result<Counts, String> {
    let helm = match Helm::prepare()? {
        Ok(helm) => helm,
        Err(reason) => return Ok(Counts::skipped(format!("charts ({reason})"))),
    };
    let cases = cases::list()?;
    let mut counts = Counts::default();
    let mut add = |title: &str, findings: Vec<String>| {
        findings.iter().for_each(|finding| println!("{title}: {finding}"));
        counts = std::mem::take(&mut counts).and(&Counts::from_success(findings.is_empty()));
    };
    for chart in CHARTS {
        add(&format!("version of {}", chart.name), chart.check_version()?);
        add("lint", helm.lint(chart)?);
        add("settings", settings::check(chart)?);
    }
    add("settings", settings::check_compose(&BROKER)?);
    for case in cases.iter().filter(|case| case.is_refused()) {
        add(&case.name, case.check_refusal(&helm)?);
    }
    for file in generated::render_all(&helm, &cases)? {
        add(&file.path, file.check()?);
    }
    add("permissions", generated::check_workloads()?);
    add("golden files", generated::find_orphans(&cases)?);
    add("kustomize", generated::check_base()?);
    add("script of the keys", keys_script::check()?);
    for chart in CHARTS {
        add("values", values::check(&helm, chart, &cases)?);
    }
    Ok(counts)
}
