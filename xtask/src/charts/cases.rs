//! Values files of `deploy/tests`: each has a golden rendering, or is refused with a message.

use std::fs;
use std::path::PathBuf;

use crate::process::root;

use super::chart::{CHARTS, Chart};
use super::helm::{Helm, NAMESPACE};

/// Directories of the files.
pub const RENDERED: &str = "deploy/tests";
const REFUSED: &str = "deploy/tests/refused";
const SUFFIX: &str = ".values.yaml";

/// A values file.
pub struct Case {
    /// Name of the file without its suffix.
    pub name: String,
    pub chart: &'static Chart,
    /// Path of the file.
    pub values: PathBuf,
    /// Namespace of the release: a line `# namespace: NAME` of the file.
    pub namespace: String,
    /// Part of the message with which it is refused: a line `# refused: TEXT` of the file.
    refusal: Option<String>,
}

impl Case {
    pub fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }

    /// Renders the chart with the file and further arguments. The inner error is the message of a refusal.
    pub fn render(&self, helm: &Helm, arguments: &[&str]) -> Result<Result<String, String>, String> {
        let values = self.values.to_string_lossy();
        helm.render(self.chart, &self.namespace, &[&["--values", values.as_ref()], arguments].concat())
    }

    /// Checks that the file is refused with its message.
    pub fn check_refusal(&self, helm: &Helm) -> Result<Vec<String>, String> {
        let expected = self.refusal.as_deref().unwrap_or_default();
        Ok(match self.render(helm, &[])? {
            Err(message) if message.contains(expected) => Vec::new(),
            Err(message) => vec![format!("the refusal must contain {expected:?}: {message}")],
            Ok(_) => vec![format!("is not refused; expected: {expected:?}")],
        })
    }
}

/// Lists the files in the order of their names.
pub fn list() -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for directory in [RENDERED, REFUSED] {
        let listed = fs::read_dir(root().join(directory)).map_err(|error| format!("{directory}: {error}"))?;
        let mut paths: Vec<PathBuf> = listed.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        paths.sort();
        for path in paths {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Some(name) = file.strip_suffix(SUFFIX) {
                cases.push(read_case(name, &path)?);
            }
        }
    }
    for case in &cases {
        let is_below_refused = case.values.starts_with(root().join(REFUSED));
        if is_below_refused != case.is_refused() {
            return Err(format!("{}: only files in {REFUSED} have a line `# refused: TEXT`", case.name));
        }
    }
    Ok(cases)
}

fn read_case(name: &str, path: &std::path::Path) -> Result<Case, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let line_after = |start: &str| text.lines().find_map(|line| line.strip_prefix(start)).map(str::to_owned);
    let chart = CHARTS.into_iter().find(|chart| name.split('-').next() == Some(chart.prefix));
    Ok(Case {
        name: name.to_owned(),
        chart: chart.ok_or_else(|| format!("{name}: the first word must name a chart: broker or agent"))?,
        values: path.to_owned(),
        namespace: line_after("# namespace: ").unwrap_or_else(|| NAMESPACE.to_owned()),
        refusal: line_after("# refused: "),
    })
}
