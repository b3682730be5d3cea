//! Provider `kind`: a cluster of the command `kind`, with real nodes in privileged containers.
//!
//! The error names which of Docker, kind or privileged containers is missing. A guard process deletes the cluster when its stdin
//! is closed, together with kind's network, if that did not exist before.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use crate::access::Access;
use crate::directory::GuardedDirectory;
use crate::error::{ClusterError, Failure};
use crate::home::project;
use crate::name::ProviderName;
use crate::owned_process::{OwnedProcess, ProcessEvent};
use crate::provider::{Cluster, Options, Provider};

/// Timeout of a start: the image may have to be pulled.
const READY_MAX: Duration = Duration::from_secs(900);
/// Network that kind creates and does not delete.
const NETWORK: &str = "kind";
/// Lines of kind's output in an error.
const TAIL_LINES: usize = 15;

/// Creates a cluster, waits until stdin is closed, and deletes the cluster. Arguments: the name, the kubeconfig, the
/// configuration, and `yes` if the network is deleted too.
const GUARD: &str = r#"
exec 3<&0 4>&1
setsid kind create cluster --name "$1" --kubeconfig "$2" --config "$3" </dev/null 3<&- 4>&- 2>&1 & create=$!
exec >/dev/null 2>&1
{ while read -r _; do :; done; kill -s KILL -- "-$create" || kill -s KILL "$create"; } <&3 4>&- & watcher=$!
trap : TERM INT HUP
if wait "$create"; then echo READY >&4; exec 4>&-; wait "$watcher"; else code=1; fi
kill -s KILL "$watcher"
kind delete cluster --name "$1" --kubeconfig "$2"
[ "$4" = yes ] && docker network rm kind
exit ${code:-0}
"#;

/// Starts kind clusters.
#[derive(Clone, Debug)]
pub struct KindProvider {
    configuration: PathBuf,
}

impl Default for KindProvider {
    fn default() -> Self {
        Self { configuration: project().join("fixtures/kind/cluster.yaml") }
    }
}

impl Provider for KindProvider {
    fn name(&self) -> ProviderName {
        ProviderName::Kind
    }

    fn start(&self, options: &Options) -> Result<Box<dyn Cluster>, ClusterError> {
        require("docker", &["info"], "Docker is missing or does not run", "install it and start it")?;
        require("kind", &["version"], "kind is missing", "get it from https://kind.sigs.k8s.io/")?;
        let directory = GuardedDirectory::new(options)?;
        let kubeconfig = directory.path().join("kubeconfig");
        let name = directory.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let deletes_network = !succeeds("docker", &["network", "inspect", NETWORK]);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", GUARD, "guard", &name]).arg(&kubeconfig).arg(&self.configuration);
        command.arg(if deletes_network { "yes" } else { "no" });
        let started = OwnedProcess::start(&mut command);
        let mut guard = started.map_err(|error| ClusterError::from_io(Path::new("/bin/sh"), &error))?;
        guard.set_end_timeout(READY_MAX);
        wait_until_ready(&mut guard, options)?;
        let access = read_access(kubeconfig)?;
        let version = node_version(&access.kubeconfig);
        Ok(Box::new(KindCluster { guard, access, version, _directory: directory }))
    }
}

/// A running cluster. Fields are dropped in this order: the cluster is deleted before its directory.
struct KindCluster {
    guard: OwnedProcess,
    access: Access,
    version: String,
    _directory: GuardedDirectory,
}

impl Cluster for KindCluster {
    fn access(&self) -> &Access {
        &self.access
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn check(&mut self) -> Result<(), ClusterError> {
        if self.guard.is_running() {
            return Ok(());
        }
        Err(ClusterError::Failed(Failure::new("the guard of the kind cluster ended", "see `kind get clusters`")))
    }
}

fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    Command::new(program).args(arguments).output().ok()
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    run(program, arguments).is_some_and(|output| output.status.success())
}

fn require(program: &str, arguments: &[&str], missing: &str, advice: &str) -> Result<(), ClusterError> {
    if succeeds(program, arguments) { Ok(()) } else { Err(unavailable(missing, advice)) }
}

fn unavailable(missing: &str, advice: &str) -> ClusterError {
    let (missing, advice) = (missing.to_owned(), advice.to_owned());
    ClusterError::Unavailable { provider: ProviderName::Kind, missing, advice }
}

fn wait_until_ready(guard: &mut OwnedProcess, options: &Options) -> Result<(), ClusterError> {
    let mut output = Vec::new();
    loop {
        match guard.next_event(READY_MAX, &options.stop)? {
            ProcessEvent::Line(line) if line == "READY" => return Ok(()),
            ProcessEvent::Line(line) => output.push(line),
            ProcessEvent::Ended(_) => return Err(explain(output)),
            ProcessEvent::Timeout => return Err(ClusterError::timed_out("kind", READY_MAX)),
        }
    }
}

/// Recognises two things that this machine may lack in kind's output.
fn explain(mut output: Vec<String>) -> ClusterError {
    let text = output.join("\n");
    if text.contains("unable to apply caps") || text.contains("operation not permitted") {
        return unavailable("this Docker runs no privileged containers", "use --cluster container, or another machine");
    }
    if text.contains("failed to pull image") || text.contains("pull access denied") || text.contains("no such host") {
        return unavailable(
            "kind cannot pull its node image",
            "load it with `docker load`, or allow access to its registry",
        );
    }
    output.drain(..output.len().saturating_sub(TAIL_LINES));
    let advice = "read the output of kind".to_owned();
    ClusterError::Failed(Failure {
        process: Some("kind".into()),
        reason: "kind created no cluster".into(),
        tail: output,
        advice,
    })
}

/// Reads the server's address; all other data is in the kubeconfig.
fn read_access(kubeconfig: PathBuf) -> Result<Access, ClusterError> {
    let text = std::fs::read_to_string(&kubeconfig).map_err(|error| ClusterError::from_io(&kubeconfig, &error))?;
    let server = text.lines().find_map(|line| line.trim().strip_prefix("server: ")).unwrap_or_default().to_owned();
    Ok(Access { server, authority_pem: None, token: None, client_certificate: None, kubeconfig, context: None })
}

fn node_version(kubeconfig: &Path) -> String {
    let arguments = ["get", "nodes", "--output=jsonpath={.items[0].status.nodeInfo.kubeletVersion}"];
    let output = Command::new("kubectl").arg("--kubeconfig").arg(kubeconfig).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    if text.is_empty() { "unknown".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_missing_on_the_machine_is_distinguished_from_a_failure() {
        let caps = "docker: Error response from daemon: unable to apply caps: operation not permitted: unknown.";
        let error = explain(vec![caps.to_owned()]);
        assert!(error.is_not_run(), "{error}");
        assert!(error.to_string().starts_with("kind cannot run here: this Docker runs no privileged containers"));
        let error = explain(vec!["ERROR: failed to pull image \"kindest/node\"".to_owned()]);
        assert!(error.is_not_run() && error.to_string().contains("docker load"), "{error}");
        let error = explain(vec!["ERROR: it broke".to_owned()]);
        assert!(!error.is_not_run() && error.to_string().contains("it broke"), "{error}");
    }
}
