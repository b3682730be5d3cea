//! Files that are made from the charts: golden renderings, `deploy/install.yaml`, the base of kustomize, and the permissions
//! of agents with which the conformance suite runs.

use std::fs;

use crate::process::{Run, root};

use super::cases::{Case, RENDERED};
use super::chart::{AGENT, BROKER, read};
use super::helm::{Helm, NAMESPACE};

const INSTALL: &str = "deploy/install.yaml";
const BASE: &str = "deploy/kustomize/base";
const HOW: &str = "# Generated from deploy/charts: UPDATE=1 cargo xtask test --part charts\n";
/// Cases whose permissions the conformance suite has, with the file and its first line.
const PERMISSIONS: [(&str, &str, &str); 2] = [
    (
        "agent-conformance",
        "fixtures/rbac/agent.yaml",
        "# Permissions of an agent of a whole cluster. The conformance suite runs every scenario on a real control plane with exactly\n\
         # these: those of the chart, and the kinds of the scenarios.\n",
    ),
    (
        "agent-in-one-namespace",
        "fixtures/rbac/agent-in-one-namespace.yaml",
        "# Permissions of an agent that may access the namespace `team` only (`--namespace team`). The conformance suite runs a\n\
         # scenario on a real control plane with exactly these.\n",
    ),
];

/// Resources of workloads, which every agent may deploy.
const WORKLOADS: [&str; 6] = ["deployments", "statefulsets", "daemonsets", "replicasets", "jobs", "cronjobs"];

/// A file with the content that it must have.
pub struct GeneratedFile {
    /// Path below the project's directory.
    pub path: String,
    content: String,
}

impl GeneratedFile {
    /// Compares the file with its content, or writes it if that was asked for.
    pub fn check(&self) -> Result<Vec<String>, String> {
        let path = root().join(&self.path);
        let found = fs::read_to_string(&path).unwrap_or_default();
        if found == self.content {
            return Ok(Vec::new());
        }
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &self.content).map_err(|error| format!("{}: {error}", self.path))?;
            return Ok(Vec::new());
        }
        Ok(vec![describe_difference(&found, &self.content)])
    }
}

/// Renders every file.
pub fn render_all(helm: &Helm, cases: &[Case]) -> Result<Vec<GeneratedFile>, String> {
    let mut files = Vec::new();
    let rendered_cases = cases.iter().filter(|case| !case.is_refused());
    for case in rendered_cases.clone() {
        let content = case.render(helm, &[])?.map_err(|message| format!("{}: {message}", case.name))?;
        files.push(GeneratedFile { path: golden_path(&case.name), content });
    }
    let namespace = format_namespace(NAMESPACE);
    let default = |chart| helm.render(chart, NAMESPACE, &[])?;
    let (broker, agent) = (default(&BROKER)?, default(&AGENT)?);
    for (file, content) in [("namespace", &namespace), ("broker", &broker), ("agent", &agent)] {
        files.push(GeneratedFile { path: format!("{BASE}/{file}.yaml"), content: format!("{HOW}{content}") });
    }
    let about = "# A broker and an agent for its cluster: the charts with their default values.\n";
    let content = format!("{HOW}{about}{namespace}{broker}{agent}");
    files.push(GeneratedFile { path: INSTALL.to_owned(), content });
    for (name, path, about) in PERMISSIONS {
        let case =
            rendered_cases.clone().find(|case| case.name == name).ok_or(format!("{name}: there is no such case"))?;
        let only = ["--show-only", "templates/serviceaccount.yaml", "--show-only", "templates/rbac.yaml"];
        let permissions = case.render(helm, &only)?.map_err(|message| format!("{name}: {message}"))?;
        let content = format!("{about}{HOW}{}{permissions}", format_namespace(&case.namespace));
        files.push(GeneratedFile { path: path.to_owned(), content });
    }
    Ok(files)
}

/// Finds workloads that the permissions of agents leave out.
pub fn check_workloads() -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for (_, path, _) in PERMISSIONS {
        let text = read(path)?;
        let listed = text.lines().filter_map(|line| line.trim().strip_prefix("resources: [")?.strip_suffix(']'));
        let listed: Vec<&str> = listed.flat_map(|line| line.split(", ")).collect();
        let missing = WORKLOADS.iter().filter(|name| !listed.contains(name));
        findings.extend(missing.map(|name| format!("{path} has no rule for {name}")));
    }
    Ok(findings)
}

/// Finds golden files that belong to no case.
pub fn find_orphans(cases: &[Case]) -> Result<Vec<String>, String> {
    let directory = format!("{RENDERED}/golden");
    let listed = fs::read_dir(root().join(&directory)).map_err(|error| format!("{directory}: {error}"))?;
    let names = listed.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let paths = names.map(|name| format!("{directory}/{name}"));
    let is_known = |path: &String| cases.iter().any(|case| !case.is_refused() && golden_path(&case.name) == *path);
    Ok(paths.filter(|path| !is_known(path)).map(|path| format!("{path} belongs to no values file")).collect())
}

/// Checks that kustomize builds the base, with every object of `install.yaml`.
pub fn check_base() -> Result<Vec<String>, String> {
    let (code, output) = Run::program("kubectl").arg("kustomize").arg(root().join(BASE)).captured()?;
    if code != 0 {
        return Ok(vec![output]);
    }
    let count = |text: &str| text.lines().filter(|line| line.starts_with("kind: ")).count();
    let (built, expected) = (count(&output), count(&read(INSTALL)?));
    Ok(if built == expected { Vec::new() } else { vec![format!("the base has {built} objects, {INSTALL} {expected}")] })
}

fn golden_path(name: &str) -> String {
    format!("{RENDERED}/golden/{name}.yaml")
}

fn format_namespace(name: &str) -> String {
    format!("---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n")
}

fn describe_difference(found: &str, expected: &str) -> String {
    let same = found.lines().zip(expected.lines()).take_while(|(found, expected)| found == expected).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("(end)").to_owned();
    format!(
        "line {}: the file has {:?}, the charts render {:?}; UPDATE=1 cargo xtask test --part charts writes it",
        same + 1,
        line(found),
        line(expected)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_the_first_line_that_differs() {
        assert!(
            describe_difference("a\nb\nc\n", "a\nx\nc\n")
                .starts_with("line 2: the file has \"b\", the charts render \"x\"")
        );
        assert!(
            describe_difference("a\n", "a\nb\n").starts_with("line 2: the file has \"(end)\", the charts render \"b\"")
        );
    }
}
