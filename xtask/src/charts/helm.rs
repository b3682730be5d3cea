//! helm, built once from the pinned module in `conformance/helm` into the user's cache directory.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::packages::succeed;
use crate::process::{Run, root, target};

use super::chart::{Chart, read};

/// Directory of the Go module.
const MODULE: &str = "conformance/helm";
/// Programs: the command, and one that renders many times.
const PACKAGES: [&str; 2] = ["helm.sh/helm/v3/cmd/helm", "./cmd/render"];
const SOURCES: [&str; 3] = ["go.mod", "go.sum", "cmd/render/main.go"];
/// Flags of the compiler.
const FLAGS: [&str; 5] = ["-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", "-s -w"];
/// Version of Kubernetes that charts are rendered for.
const KUBERNETES: &str = "1.35.0";
/// Namespace of releases that name none.
pub const NAMESPACE: &str = "sindri-system";

/// The programs.
pub struct Helm {
    programs: PathBuf,
    /// Directory instead of the user's own configuration.
    home: PathBuf,
}

/// One rendering of a chart.
pub struct Rendering<'a> {
    pub chart: &'a Chart,
    pub namespace: &'a str,
    /// Values files.
    pub files: Vec<&'a Path>,
    /// Values in the form of `--set-json`.
    pub set: Option<String>,
}

impl Helm {
    /// Finds the programs in the cache, or builds them. The inner error is the reason why they cannot run here.
    pub fn prepare() -> Result<Result<Self, &'static str>, String> {
        let Ok((0, go)) = Run::program("go").args(["env", "GOVERSION", "GOOS", "GOARCH"]).captured() else {
            return Ok(Err("they need Go 1.26, to build helm"));
        };
        let programs = cache().join(compute_key(&go)?);
        if !programs.is_dir()
            && let Err(reason) = build(&programs)
        {
            println!("go build: {reason}");
            return Ok(Err("helm cannot be built"));
        }
        let home = target().join("helm");
        fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
        Ok(Ok(Self { programs, home }))
    }

    /// Path of the command.
    pub fn program(&self) -> PathBuf {
        self.programs.join("helm")
    }

    /// Renders charts in one process: manifests by the names of their templates, or `None` for a refusal.
    pub fn render_many(&self, renderings: &[Rendering<'_>]) -> Result<Vec<Option<Value>>, String> {
        let to_request = |rendering: &Rendering<'_>| {
            json!({
                "chart": rendering.chart.directory(), "release": rendering.chart.name, "namespace": rendering.namespace,
                "files": rendering.files, "set": Vec::from_iter(&rendering.set),
            })
        };
        let requests: Value = renderings.iter().map(to_request).collect();
        let file = self.home.join("requests.json");
        fs::write(&file, requests.to_string()).map_err(|error| format!("{}: {error}", file.display()))?;
        let (code, output) = Run::program(self.programs.join("render")).arg(file).captured()?;
        if code != 0 {
            return Err(output);
        }
        let responses: Vec<Value> = serde_json::from_str(&output).map_err(|error| format!("render: {error}"))?;
        Ok(responses.into_iter().map(|response| response.get("rendered").cloned()).collect())
    }

    /// Renders a chart. The inner error is the message of a refusal.
    pub fn render(&self, chart: &Chart, namespace: &str, arguments: &[&str]) -> Result<Result<String, String>, String> {
        let run = self
            .command(&["template", chart.name, "--kube-version", KUBERNETES])
            .arg(chart.directory())
            .args(["--namespace", namespace])
            .args(arguments);
        let (code, output) = run.captured()?;
        Ok(if code == 0 { Ok(output) } else { Err(output) })
    }

    /// Returns the complaints of the linter about a chart.
    pub fn lint(&self, chart: &Chart) -> Result<Vec<String>, String> {
        let run = self
            .command(&["lint", "--strict", "--quiet", "--namespace", NAMESPACE, "--kube-version", KUBERNETES])
            .arg(chart.directory());
        let (code, output) = run.captured()?;
        Ok(if code == 0 { Vec::new() } else { vec![output] })
    }

    fn command(&self, arguments: &[&str]) -> Run {
        let variables = ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"];
        let run = Run::program(self.program()).args(arguments).directory(root()).env("KUBECONFIG", "/dev/null");
        variables.into_iter().fold(run, |run, variable| run.env(variable, &self.home))
    }
}

/// Computes the checksum of everything that determines the binaries.
fn compute_key(go: &str) -> Result<String, String> {
    let mut hash = DefaultHasher::new();
    (go, FLAGS, PACKAGES).hash(&mut hash);
    for file in SOURCES {
        read(&format!("{MODULE}/{file}"))?.hash(&mut hash);
    }
    Ok(format!("{:016x}", hash.finish()))
}

/// Builds the programs beside their place and renames the directory, so that it is complete when it appears.
fn build(programs: &Path) -> Result<(), String> {
    println!("building helm from {MODULE}, once: this takes some minutes");
    let partial = programs.with_extension(format!("partial-{}", std::process::id()));
    let fail = |error: std::io::Error| format!("{}: {error}", partial.display());
    fs::create_dir_all(&partial).map_err(fail)?;
    let run = Run::program("go").arg("build").args(FLAGS).arg("-o").arg(&partial).args(PACKAGES);
    // No C compiler, and no settings of the user, as for the control plane.
    let run = run.env("CGO_ENABLED", "0").env("GOWORK", "off").env("GOFLAGS", "").directory(root().join(MODULE));
    let built = succeed(run).and_then(|()| fs::rename(&partial, programs).map_err(fail));
    if built.is_err() {
        // Fails if it was renamed.
        let _removed = fs::remove_dir_all(&partial);
    }
    // Another program may have built them in the meantime.
    if programs.is_dir() { Ok(()) } else { built }
}

/// Directory of the project's binaries in the user's cache directory, as `conformance/cluster` has it for the control plane.
fn cache() -> PathBuf {
    let read_path = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let user = read_path("XDG_CACHE_HOME").or_else(|| read_path("HOME").map(|home| home.join(".cache")));
    user.unwrap_or_else(target).join("sindri/helm")
}
