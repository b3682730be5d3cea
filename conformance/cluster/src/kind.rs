//! `kind`: a cluster of the command `kind`, with real nodes in privileged containers.
//!
//! Where Docker, kind or privileged containers are missing this says which. A guard deletes the cluster when its leash
//! is cut, and with it kind's network, if that was not there before.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use crate::access::Access;
use crate::directory::GuardedDirectory;
use crate::error::{ClusterError, Failure};
use crate::home::project;
use crate::leashed::{Heard, Leashed};
use crate::name::ProviderName;
use crate::provider::{Cluster, Options, Provider};

/// How long a cluster may take: its image may have to be fetched.
const READY_MAX: Duration = Duration::from_secs(900);
/// The network that kind makes and leaves behind.
const NETWORK: &str = "kind";
/// Lines of kind that are shown when it fails.
const TAIL_LINES: usize = 15;

/// Makes a cluster, then waits until the input ends, then deletes it again. The arguments are the name, the
/// kubeconfig, the configuration, and `yes` if the network is to go too.
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

/// Starts clusters of kind.
#[derive(Clone, Debug)]
pub struct Kind {
    configuration: PathBuf,
}

impl Default for Kind {
    fn default() -> Self {
        Self { configuration: project().join("fixtures/kind/cluster.yaml") }
    }
}

impl Provider for Kind {
    fn name(&self) -> ProviderName {
        ProviderName::Kind
    }

    fn start(&self, options: &Options) -> Result<Box<dyn Cluster>, ClusterError> {
        require("docker", &["info"], "Docker is missing or does not run", "install it and start it")?;
        require("kind", &["version"], "kind is missing", "get it from https://kind.sigs.k8s.io/")?;
        let directory = GuardedDirectory::new(options)?;
        let kubeconfig = directory.path().join("kubeconfig");
        let name = directory.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_network_ours = !succeeds("docker", &["network", "inspect", NETWORK]);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", GUARD, "guard", &name]).arg(&kubeconfig).arg(&self.configuration);
        command.arg(if is_network_ours { "yes" } else { "no" });
        let started = Leashed::start(&mut command);
        let mut guard = started.map_err(|error| ClusterError::file(Path::new("/bin/sh"), &error))?;
        guard.allow_to_end(READY_MAX);
        await_ready(&mut guard, options)?;
        let access = read_access(kubeconfig)?;
        let version = node_version(&access.kubeconfig);
        Ok(Box::new(KindCluster { guard, access, version, _directory: directory }))
    }
}

/// Fields are dropped in this order: the cluster is deleted before its directory goes.
struct KindCluster {
    guard: Leashed,
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
        if self.guard.runs() {
            return Ok(());
        }
        Err(ClusterError::Failed(Failure::new("the guard of the kind cluster ended", "see `kind get clusters`")))
    }
}

fn ask(program: &str, arguments: &[&str]) -> Option<Output> {
    Command::new(program).args(arguments).output().ok()
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    ask(program, arguments).is_some_and(|output| output.status.success())
}

fn require(program: &str, arguments: &[&str], missing: &str, advice: &str) -> Result<(), ClusterError> {
    if succeeds(program, arguments) { Ok(()) } else { Err(unavailable(missing, advice)) }
}

fn unavailable(missing: &str, advice: &str) -> ClusterError {
    let (missing, advice) = (missing.to_owned(), advice.to_owned());
    ClusterError::Unavailable { provider: ProviderName::Kind, missing, advice }
}

fn await_ready(guard: &mut Leashed, options: &Options) -> Result<(), ClusterError> {
    let mut said = Vec::new();
    loop {
        match guard.hear(READY_MAX, &options.stop)? {
            Heard::Line(line) if line == "READY" => return Ok(()),
            Heard::Line(line) => said.push(line),
            Heard::Ended(_) => return Err(explain(said)),
            Heard::Nothing => return Err(ClusterError::late("kind", READY_MAX)),
        }
    }
}

/// What kind says when it fails is long; two things that this machine may lack are told by their marks.
fn explain(mut said: Vec<String>) -> ClusterError {
    let text = said.join("\n");
    if text.contains("unable to apply caps") || text.contains("operation not permitted") {
        return unavailable("this Docker runs no privileged containers", "use --cluster container, or another machine");
    }
    if text.contains("failed to pull image") || text.contains("pull access denied") || text.contains("no such host") {
        return unavailable(
            "kind cannot fetch its node image",
            "load it with `docker load`, or open the way to its registry",
        );
    }
    said.drain(..said.len().saturating_sub(TAIL_LINES));
    let advice = "see what kind says".to_owned();
    ClusterError::Failed(Failure {
        process: Some("kind".into()),
        reason: "kind made no cluster".into(),
        tail: said,
        advice,
    })
}

/// Who wants more than the server's address reads the kubeconfig.
fn read_access(kubeconfig: PathBuf) -> Result<Access, ClusterError> {
    let text = std::fs::read_to_string(&kubeconfig).map_err(|error| ClusterError::file(&kubeconfig, &error))?;
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
    fn what_the_machine_lacks_is_told_from_what_failed() {
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
