//! The page of `cargo xtask sim --report`, looked at in a real browser.

use std::fs;
use std::path::Path;

use crate::counts::Counts;
use crate::process::{Run, target};
use crate::tools;

/// A scenario in which a stack is applied, and whose last expectation does not hold.
const SCENARIO: &str = "\
title: an expectation that does not hold
proves: []
fleet: {agents: [east]}
steps:
  - submit: {stack: shop, yaml: '{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: default}}'}
  - await: {stack: shop, applied: 1}
  - kill: east
  - restart: east
  - polls: 3
  - delete: {stack: shop}
  - await: {stack: shop, gone: true}
expect:
  - object: {cluster: east, object: ConfigMap default/settings}
";
/// Texts that the page shows once its script has run.
const SHOWN: [&str; 6] = [
    "1 scenarios, 1 runs",
    "expect: ",
    "ConfigMap default/settings is not in east",
    "cargo xtask sim --scenario missing --seed 0",
    "every fault ends",
    "ConfigMap sindri-system/",
];
/// A picture of an empty page is smaller.
const PICTURE_MIN: u64 = 20_000;

/// Writes the page of a failing run and looks at it. It is skipped without Chromium.
pub fn test() -> Result<Counts, String> {
    if let Err(missing) = tools::require_chromium() {
        println!("{missing}");
        return Ok(Counts::skipped("the report of a simulation in a browser (it needs Chromium)"));
    }
    let directory = target().join("report");
    write_project(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let page = directory.join("report.html");
    let simulation = Run::built("sindri-sim").args(["sim", "--seed", "0", "--report"]).arg(&page);
    let (code, output) = simulation.arg("--root").arg(&directory).captured()?;
    if code != 1 {
        println!("the scenario must fail: exit code {code}\n{output}");
        return Ok(Counts::from_success(false));
    }
    let (_, shown) = browse(&directory, &page, "--dump-dom")?;
    let missing: Vec<&str> = SHOWN.into_iter().filter(|text| !shown.contains(text)).collect();
    if !missing.is_empty() {
        println!("the page does not show {missing:?}:\n{shown}");
    }
    let picture = directory.join("report.png");
    browse(&directory, &page, &format!("--screenshot={}", picture.display()))?;
    let size = fs::metadata(&picture).map_or(0, |metadata| metadata.len());
    if size < PICTURE_MIN {
        println!("{} has {size} bytes: the page looks empty", picture.display());
    }
    Ok(Counts::from_success(missing.is_empty()).and(&Counts::from_success(size >= PICTURE_MIN)))
}

fn write_project(directory: &Path) -> std::io::Result<()> {
    fs::create_dir_all(directory.join("scenarios"))?;
    fs::create_dir_all(directory.join("fixtures/bundles"))?;
    fs::write(directory.join("scenarios/missing.yaml"), SCENARIO)
}

/// Opens a page in a browser without a window; the browser makes no requests of its own.
fn browse(directory: &Path, page: &Path, action: &str) -> Result<(u8, String), String> {
    let quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"];
    let browser = Run::program(tools::CHROMIUM).args(["--headless", "--no-sandbox", "--disable-gpu"]).args(quiet);
    let profile = format!("--user-data-dir={}", directory.join("browser").display());
    let look = ["--window-size=1200,820", "--virtual-time-budget=5000", action];
    browser.arg(profile).args(look).arg(format!("file://{}", page.display())).captured()
}
