//! `demo`: a broker, an agent and a simulated cluster, driven by the commands that a user would type.
//!
//! Four steps: a stack is declared, it converges, a manual change is undone, and the stack is deleted. Left out: faults, which the
//! suite and the simulation cover.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use sindri_cluster::program::{ExitReason, print_line};
use sindri_cluster::{Cluster, Options, Provider};
use sindri_conformance::keys::find_key;
use sindri_conformance::process::Process;
use sindri_conformance::runtime::InterruptibleRuntime;
use sindri_conformance::workspace::{Broker, POLLING_INTERVAL, Workspace};
use tokio::time::Instant;

use crate::cluster_user::{
    ClusterUser, EDIT_SETTINGS, LIST_NAMESPACES, LIST_OBJECTS, NAMESPACE, READ_SETTINGS, SETTINGS, UserAction,
};
use crate::flags::DemoFlags;
use crate::setup::{create_runtime, find_binaries};
use crate::shell::Shell;

/// Bundle that is submitted, below the project's directory.
const BUNDLE: &str = "fixtures/bundles/shop-v1.yaml";
/// Name of the agent and its cluster.
const NAME: &str = "east";
/// Timeout of each step.
const STEP_MAX: Duration = Duration::from_secs(60);
/// Time between two checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

pub fn demo(flags: &DemoFlags) -> Result<(), ExitReason> {
    let bundle = flags.root.join(BUNDLE);
    if !bundle.is_file() {
        return Err(ExitReason::Usage(format!(
            "{} does not exist: start this in the project's directory",
            bundle.display()
        )));
    }
    let (binaries, runtime) = (find_binaries()?, create_runtime()?);
    let workspace = Workspace::new(binaries, runtime.clone()).map_err(broken)?;
    let directory = workspace.path().to_owned();
    let done = Demo::new(workspace).and_then(|mut demo| {
        let done = demo.run(&bundle).and_then(|()| demo.keep_running(flags.seconds));
        done.inspect_err(|_| demo.print_logs())
    });
    if let Some(code) = runtime.interrupt_code().filter(|_| done.is_err()) {
        return Err(ExitReason::Interrupted(code));
    }
    done?;
    print_line(format!("\nAll processes have ended, and {} is removed.", directory.display()));
    Ok(())
}

fn broken(error: impl std::fmt::Display) -> ExitReason {
    ExitReason::Failed(error.to_string())
}

/// The demonstration. Fields are dropped in this order: the agent ends before its peers, files are removed last.
struct Demo {
    agent: Option<Process>,
    broker: Broker,
    cluster: Box<dyn Cluster>,
    shell: Shell,
    user: ClusterUser,
    workspace: Workspace,
}

impl Demo {
    fn new(workspace: Workspace) -> Result<Self, ExitReason> {
        let broker = workspace.start_broker().map_err(broken)?;
        let cluster = workspace.sim_provider().full().start(&Options::default()).map_err(broken)?;
        let environment = vec![
            ("SINDRI_BROKER", broker.url.clone().into()),
            ("SINDRI_KEY_FILE", broker.key_file.clone().into()),
            ("KUBECONFIG", cluster.access().kubeconfig.clone().into()),
            // kubectl's cache of this cluster is useless after the demonstration.
            ("KUBECACHEDIR", workspace.path().join("kubectl").into()),
        ];
        let shell = Shell { cli: workspace.binaries().cli.clone(), environment };
        let user = ClusterUser::new(&shell, cluster.access());
        Ok(Self { agent: None, broker, cluster, shell, user, workspace })
    }

    fn runtime(&self) -> &InterruptibleRuntime {
        self.workspace.runtime()
    }

    fn run(&mut self, bundle: &Path) -> Result<(), ExitReason> {
        self.print_addresses();
        self.register_agent()?;
        self.declare(bundle)?;
        self.show_drift()?;
        self.delete()
    }

    fn print_addresses(&self) {
        let (broker, cluster) = (&self.broker, self.cluster.access());
        print_line("A broker, a simulated cluster and its agent, as real processes on this machine.\n");
        print_line(format!("  broker      {}", broker.url));
        print_line(format!("  cluster     {}", cluster.server));
        print_line(format!("  kubeconfig  {}", cluster.kubeconfig.display()));
        print_line("\nTo try it yourself, in another terminal:\n");
        print_line(format!("  export SINDRI_BROKER={} SINDRI_KEY_FILE={}", broker.url, broker.key_file.display()));
        print_line(format!("  export KUBECONFIG={}", cluster.kubeconfig.display()));
        print_line(format!("  {} status", self.shell.cli.display()));
        print_line("  kubectl get namespaces");
    }

    fn sindri(&self, arguments: &[&str]) -> Result<String, ExitReason> {
        self.shell.run("sindri", arguments)
    }

    fn register_agent(&mut self) -> Result<(), ExitReason> {
        print_line("\nAn agent is created for the cluster; its key is hidden here:\n");
        let created = self.sindri(&["agent", "create", NAME, "--cluster", NAME])?;
        let key = find_key(&created)
            .ok_or_else(|| ExitReason::Failed("the broker returned no key for the agent".to_owned()))?;
        self.sindri(&["agent", "activate", NAME])?;
        let (broker, kubeconfig) = (&self.broker.url, &self.cluster.access().kubeconfig);
        let agent = self.workspace.start_agent(NAME, key, broker, kubeconfig, POLLING_INTERVAL, &[]);
        self.agent = Some(agent.map_err(broken)?);
        Ok(())
    }

    fn declare(&mut self, bundle: &Path) -> Result<(), ExitReason> {
        print_line("\nA stack is created and targeted at the agent:\n");
        self.sindri(&["stack", "create", "shop"])?;
        self.sindri(&["apply", "shop", "--file", &bundle.display().to_string()])?;
        self.sindri(&["target", "shop", NAME])?;
        let took = self.wait_until("the stack to be applied", |demo| {
            Ok(demo.shell.run_quietly("sindri", &["status", "shop"])?.contains("Ready"))
        })?;
        print_line(format!("\nIt was applied after {took:.1?}:\n"));
        self.sindri(&["status"])?;
        self.perform(&LIST_OBJECTS)
    }

    fn perform(&self, action: &UserAction) -> Result<(), ExitReason> {
        self.user.perform(action, &self.shell, self.runtime())
    }

    fn show_drift(&mut self) -> Result<(), ExitReason> {
        print_line("\nA user changes it manually:\n");
        self.perform(&EDIT_SETTINGS)?;
        let took = self.wait_until("the change to be undone", |demo| {
            let (_, settings) = demo.user.read(demo.runtime(), SETTINGS)?;
            Ok(settings["data"]["colour"] == "green")
        })?;
        print_line(format!("\nThe agent restored the declared value after {took:.1?}:\n"));
        self.perform(&READ_SETTINGS)
    }

    fn delete(&mut self) -> Result<(), ExitReason> {
        print_line("\nThe stack is deleted:\n");
        self.sindri(&["delete", "shop"])?;
        let took = self.wait_until("the stack to be gone", |demo| {
            let (status, _) = demo.user.read(demo.runtime(), NAMESPACE)?;
            Ok(status == 404 && !demo.shell.run_quietly("sindri", &["status"])?.contains("Removing"))
        })?;
        print_line(format!("\nAfter {took:.1?} all its objects are deleted, and the broker has the report:\n"));
        self.perform(&LIST_NAMESPACES)?;
        self.sindri(&["status"]).map(drop)
    }

    /// Waits until a condition holds, and returns the time that it took.
    fn wait_until(
        &mut self,
        what: &str,
        mut holds: impl FnMut(&Self) -> Result<bool, ExitReason>,
    ) -> Result<Duration, ExitReason> {
        let began = Instant::now();
        while !holds(self)? {
            if began.elapsed() >= STEP_MAX {
                return Err(ExitReason::Failed(format!("waited {STEP_MAX:?} for {what}")));
            }
            self.sleep(CHECK_INTERVAL)?;
        }
        Ok(began.elapsed())
    }

    fn sleep(&mut self, span: Duration) -> Result<(), ExitReason> {
        self.runtime().sleep(span).map_err(|error| ExitReason::Failed(error.to_string()))?;
        for process in [&mut self.broker.process].into_iter().chain(&mut self.agent) {
            process.check().map_err(broken)?;
        }
        self.cluster.check().map_err(broken)
    }

    /// Keeps everything running for the user. A signal ends it, and is no failure.
    fn keep_running(&mut self, seconds: Option<u32>) -> Result<(), ExitReason> {
        let end = match seconds {
            Some(seconds) => Some(Instant::now() + Duration::from_secs(u64::from(seconds))),
            None if std::io::stdout().is_terminal() => None,
            None => return Ok(()),
        };
        if seconds != Some(0) {
            print_line(
                "\nThe broker, the cluster and the agent keep running: use them as shown above. Ctrl-C ends them.",
            );
        }
        while end.is_none_or(|end| Instant::now() < end) {
            let waited = self.sleep(CHECK_INTERVAL);
            if self.runtime().interrupt_code().is_some() {
                return Ok(());
            }
            waited?;
        }
        Ok(())
    }

    /// Prints the last lines of the logs, unless a signal ended the demonstration.
    fn print_logs(&self) {
        if self.runtime().interrupt_code().is_none() {
            let processes = [&self.broker.process].into_iter().chain(&self.agent);
            processes.for_each(|process| eprint!("{}", process.tail()));
        }
    }
}
