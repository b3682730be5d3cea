//! The charts of the project.

use std::path::PathBuf;

use crate::process::root;

/// A chart with its release in the generated files.
pub struct Chart {
    /// Name of the chart, of its directory and of the release.
    pub name: &'static str,
    /// First word of the names of its cases.
    pub prefix: &'static str,
    /// Table of the settings of its program.
    pub settings_source: &'static str,
    /// Section of these settings that the values leave out.
    pub settings_section: &'static str,
    /// Settings that have no place in a pod, or that the chart has another way for.
    pub settings_left_out: &'static [&'static str],
}

pub const BROKER: Chart = Chart {
    name: "sindri-broker",
    prefix: "broker",
    settings_source: "system/broker/src/process/settings.rs",
    settings_section: "",
    // Keys come from files.
    settings_left_out: &["print_admin_key", "webhooks.encryption_key"],
};
pub const AGENT: Chart = Chart {
    name: "sindri-agent",
    prefix: "agent",
    settings_source: "system/agent/src/process/settings.rs",
    settings_section: "agent.",
    // The key comes from a file, the cluster is the one of the pod, and its replicas need the Lease.
    settings_left_out: &["agent.pak", "agent.kubeconfig", "agent.context", "agent.lease", "agent.identity"],
};
pub const CHARTS: [&Chart; 2] = [&BROKER, &AGENT];

impl Chart {
    /// Directory of the chart.
    pub fn directory(&self) -> PathBuf {
        root().join("deploy/charts").join(self.name)
    }

    /// Reads a file of the chart.
    pub fn read(&self, file: &str) -> Result<String, String> {
        read(&format!("deploy/charts/{}/{file}", self.name))
    }

    /// Compares the versions of the chart with that of the workspace.
    pub fn check_version(&self) -> Result<Vec<String>, String> {
        let manifest = read("Cargo.toml")?;
        let version = manifest.lines().find_map(|line| line.strip_prefix("version = ")).unwrap_or_default();
        let version = version.trim_matches('"');
        let text = self.read("Chart.yaml")?;
        let is_missing = |name: &&&str| !text.lines().any(|line| line == format!("{name}: {version}"));
        let missing =
            ["version", "appVersion"].iter().filter(is_missing).map(|name| format!("{name} must be {version}"));
        Ok(missing.collect())
    }
}

/// Reads a file of the project.
pub fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))
}
