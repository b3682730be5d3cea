//! `demo`: a broker, an agent and a simulated cluster at work, driven by the commands that a user would type.
//!
//! One story with four acts: a stack is declared, it converges, a change by hand is undone, and the stack is
//! deleted. Left out: faults, which the suite and the simulation show.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use sindri_cluster::program::{Ending, say};
use sindri_cluster::{Cluster, Options, Provider};
use sindri_conformance::keys::key_in;
use sindri_conformance::process::Process;
use sindri_conformance::site::{Broker, POLLING_INTERVAL, Site};
use sindri_conformance::waiter::Waiter;
use tokio::time::Instant;

use crate::command::Shell;
use crate::hand::{EDIT, Gesture, Hand, LOOK, LOOK_AT_COLOUR, LOOK_AT_NAMESPACES, NAMESPACE, SETTINGS};
use crate::{DemoFlags, prepare};

/// What is submitted, below the project's directory.
const BUNDLE: &str = "fixtures/bundles/shop-v1.yaml";
/// The agent and its cluster.
const NAME: &str = "east";
/// The longest that anything may take.
const ACT_MAX: Duration = Duration::from_secs(60);
/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

pub fn demo(flags: &DemoFlags) -> Result<(), Ending> {
    let bundle = flags.root.join(BUNDLE);
    if !bundle.is_file() {
        return Err(Ending::Mistake(format!(
            "{} is not there: start this in the project's directory",
            bundle.display()
        )));
    }
    let (binaries, waiter) = prepare()?;
    let site = Site::new(binaries, waiter.clone()).map_err(broken)?;
    let directory = site.path().to_owned();
    let shown = Show::new(site).and_then(|mut show| {
        let told = show.story(&bundle).and_then(|()| show.stay(flags.seconds));
        told.inspect_err(|_| show.explain())
    });
    if let Some(code) = waiter.interrupted().filter(|_| shown.is_err()) {
        return Err(Ending::Interrupted(code));
    }
    shown?;
    say(format!("\nEverything is ended, and {} is removed.", directory.display()));
    Ok(())
}

fn broken(error: impl std::fmt::Display) -> Ending {
    Ending::Broken(error.to_string())
}

/// The demonstration. Fields are dropped in this order: the agent ends before what it talks to, files go last.
struct Show {
    agent: Option<Process>,
    broker: Broker,
    cluster: Box<dyn Cluster>,
    shell: Shell,
    hand: Hand,
    site: Site,
}

impl Show {
    fn new(site: Site) -> Result<Self, Ending> {
        let broker = site.start_broker().map_err(broken)?;
        let cluster = site.simulated().start(&Options::default()).map_err(broken)?;
        let environment = vec![
            ("SINDRI_BROKER", broker.url.clone().into()),
            ("SINDRI_KEY_FILE", broker.key_file.clone().into()),
            ("KUBECONFIG", cluster.access().kubeconfig.clone().into()),
            // What kubectl remembers of this cluster is of no use to anyone afterwards.
            ("KUBECACHEDIR", site.path().join("kubectl").into()),
        ];
        let shell = Shell { cli: site.binaries().cli.clone(), environment };
        let hand = Hand::new(&shell, cluster.access());
        Ok(Self { agent: None, broker, cluster, shell, hand, site })
    }

    fn waiter(&self) -> &Waiter {
        self.site.waiter()
    }

    fn story(&mut self, bundle: &Path) -> Result<(), Ending> {
        self.introduce();
        self.enlist()?;
        self.declare(bundle)?;
        self.undo_an_edit()?;
        self.delete()
    }

    fn introduce(&self) {
        let (broker, cluster) = (&self.broker, self.cluster.access());
        say("A broker, a simulated cluster and its agent, as real processes on this machine.\n");
        say(format!("  broker      {}", broker.url));
        say(format!("  cluster     {}", cluster.server));
        say(format!("  kubeconfig  {}", cluster.kubeconfig.display()));
        say("\nTo play along, in another terminal:\n");
        say(format!("  export SINDRI_BROKER={} SINDRI_KEY_FILE={}", broker.url, broker.key_file.display()));
        say(format!("  export KUBECONFIG={}", cluster.kubeconfig.display()));
        say(format!("  {} status", self.shell.cli.display()));
        say("  kubectl get namespaces");
    }

    fn sindri(&self, arguments: &[&str]) -> Result<String, Ending> {
        self.shell.run("sindri", arguments)
    }

    fn enlist(&mut self) -> Result<(), Ending> {
        say("\nAn agent for the cluster, which gets the key that is hidden here:\n");
        let made = self.sindri(&["agent", "create", NAME, "--cluster", NAME])?;
        let key = key_in(&made).ok_or_else(|| Ending::Broken("a new agent came without a key".to_owned()))?;
        self.sindri(&["agent", "activate", NAME])?;
        let (broker, kubeconfig) = (&self.broker.url, &self.cluster.access().kubeconfig);
        let agent = self.site.start_agent(NAME, key, broker, kubeconfig, POLLING_INTERVAL, None);
        self.agent = Some(agent.map_err(broken)?);
        Ok(())
    }

    fn declare(&mut self, bundle: &Path) -> Result<(), Ending> {
        say("\nA stack is declared and sent to the agent:\n");
        self.sindri(&["stack", "create", "shop"])?;
        self.sindri(&["apply", "shop", "--file", &bundle.display().to_string()])?;
        self.sindri(&["target", "shop", NAME])?;
        let took = self.until("the stack to be applied", |show| {
            Ok(show.shell.quietly("sindri", &["status", "shop"])?.contains("applied"))
        })?;
        say(format!("\nAfter {took:.1?} it is applied:\n"));
        self.sindri(&["status"])?;
        self.by_hand(&LOOK)
    }

    fn by_hand(&self, gesture: &Gesture) -> Result<(), Ending> {
        self.hand.perform(gesture, &self.shell, self.waiter())
    }

    fn undo_an_edit(&mut self) -> Result<(), Ending> {
        say("\nSomeone changes it by hand:\n");
        self.by_hand(&EDIT)?;
        let took = self.until("the change to be undone", |show| {
            let (_, settings) = show.hand.read(show.waiter(), SETTINGS)?;
            Ok(settings["data"]["colour"] == "green")
        })?;
        say(format!("\nAfter {took:.1?} the agent has restored what was declared:\n"));
        self.by_hand(&LOOK_AT_COLOUR)
    }

    fn delete(&mut self) -> Result<(), Ending> {
        say("\nThe stack is deleted:\n");
        self.sindri(&["delete", "shop"])?;
        let took = self.until("the stack to be gone", |show| {
            let (status, _) = show.hand.read(show.waiter(), NAMESPACE)?;
            Ok(status == 404 && !show.shell.quietly("sindri", &["status"])?.contains("removing"))
        })?;
        say(format!("\nAfter {took:.1?} nothing of it is left, and the broker knows it:\n"));
        self.by_hand(&LOOK_AT_NAMESPACES)?;
        self.sindri(&["status"]).map(drop)
    }

    /// Waits until something holds, and tells how long it took.
    fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> Result<bool, Ending>) -> Result<Duration, Ending> {
        let began = Instant::now();
        while !holds(self)? {
            if began.elapsed() >= ACT_MAX {
                return Err(Ending::Broken(format!("waited {ACT_MAX:?} for {what}")));
            }
            self.pause(LOOK_EVERY)?;
        }
        Ok(began.elapsed())
    }

    fn pause(&mut self, span: Duration) -> Result<(), Ending> {
        self.waiter().pause(span).map_err(|cut| Ending::Broken(cut.to_string()))?;
        for process in [&mut self.broker.process].into_iter().chain(&mut self.agent) {
            process.check().map_err(broken)?;
        }
        self.cluster.check().map_err(broken)
    }

    /// Leaves everything running for whoever plays along. A signal is how one ends it, and no failure.
    fn stay(&mut self, seconds: Option<u32>) -> Result<(), Ending> {
        let end = match seconds {
            Some(seconds) => Some(Instant::now() + Duration::from_secs(u64::from(seconds))),
            None if std::io::stdout().is_terminal() => None,
            None => return Ok(()),
        };
        if seconds != Some(0) {
            say("\nThe broker, the cluster and the agent still run: play along as shown above. Ctrl-C ends them.");
        }
        while end.is_none_or(|end| Instant::now() < end) {
            let waited = self.pause(LOOK_EVERY);
            if self.waiter().interrupted().is_some() {
                return Ok(());
            }
            waited?;
        }
        Ok(())
    }

    /// Shows what the processes said last, unless it was a signal that ended the story.
    fn explain(&self) {
        if self.waiter().interrupted().is_none() {
            let processes = [&self.broker.process].into_iter().chain(&self.agent);
            processes.for_each(|process| eprint!("{}", process.tail()));
        }
    }
}
