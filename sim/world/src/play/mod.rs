//! Plays a story on a stage: carries out its steps and checks what it expects.
//!
//! Left out: what must hold in every story (the oracles), which is the run's business.

mod await_step;
mod conditions;
mod converge;
mod expect;
mod objects;
mod operator;
mod text;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use crate::ledger::Ledger;
use crate::scenario::{Library, Quiet, Scenario, Step};
use crate::stage::{HostAction, Stage, Trouble};

/// A story on its stage.
pub struct Play<'a> {
    pub(crate) stage: &'a mut dyn Stage,
    pub(crate) library: &'a Library,
    pub(crate) scenario: &'a Scenario,
    pub(crate) ledger: Rc<RefCell<Ledger>>,
    /// Bounds of waits are longer when faults were added to the story.
    pub(crate) patience: Duration,
}

impl<'a> Play<'a> {
    /// A story on a stage whose agents are in the ledger; `patience` is added to the bound of every wait.
    pub fn new(
        stage: &'a mut dyn Stage,
        library: &'a Library,
        scenario: &'a Scenario,
        ledger: Rc<RefCell<Ledger>>,
        patience: Duration,
    ) -> Self {
        Self { stage, library, scenario, ledger, patience }
    }

    /// Carries out every step.
    pub fn steps(&mut self) -> Result<(), Trouble> {
        for (index, step) in self.scenario.steps.iter().enumerate() {
            crate::trace::record("world", &format!("~ step {} {}", index + 1, name(step)));
            self.step(step).map_err(|trouble| match trouble {
                Trouble::Broken(reason) => Trouble::Broken(format!("step {}: {reason}", index + 1)),
                other => other,
            })?;
        }
        Ok(())
    }

    /// Checks what the story expects at its end; `calm` when no faults were added.
    pub fn expectations(&mut self, calm: bool) -> Result<(), Trouble> {
        for expectation in &self.scenario.expect {
            self.expect(expectation)?;
        }
        for expectation in self.scenario.expect_calm.iter().filter(|_| calm) {
            self.expect(expectation)?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), Trouble> {
        let interval = self.stage.polling_interval();
        match step {
            Step::Submit(submit) => self.submit(submit),
            Step::Delete(stack) => self.delete(&stack.stack),
            Step::Target(targeting) => self.target(&targeting.stack, &targeting.agent),
            Step::Untarget(targeting) => self.untarget(&targeting.stack, &targeting.agent),
            Step::Label(labelling) => self.label(labelling),
            Step::Unlabel(labelling) => self.unlabel(labelling),
            Step::Annotate(annotating) => self.annotate(annotating),
            Step::Approve(stack) => self.decide(&stack.stack, true),
            Step::Reject(stack) => self.decide(&stack.stack, false),
            Step::Activate(activation) => self.activate(activation),
            Step::Dismiss(agent) => self.dismiss(&agent.agent),
            Step::Enlist(agent) => self.enlist(&agent.agent),
            Step::Backup => self.stage.act_on_hosts(HostAction::Backup),
            Step::Restore(restore) => self.stage.act_on_hosts(HostAction::Restore { declared: restore.declared }),
            Step::Stall => self.stage.act_on_hosts(HostAction::Stall(true)),
            Step::Resume => self.stage.act_on_hosts(HostAction::Stall(false)),
            Step::Await(condition) => self.wait_for(condition),
            Step::Advance(span) => self.stage.advance(span.0),
            Step::Polls(count) => self.stage.advance(interval * *count + interval / 4),
            Step::Quiet(quiet) => self.quiet(quiet),
            Step::Partition(link) => self.stage.act_on_hosts(HostAction::Partition(link.between.clone())),
            Step::Repair(link) => self.stage.act_on_hosts(HostAction::Repair(link.between.clone())),
            Step::Latency(slow) => {
                let action = HostAction::Latency(slow.between.clone(), slow.min.0, slow.max.0);
                self.stage.act_on_hosts(action)
            }
            Step::Kill(host) => self.stage.act_on_hosts(HostAction::Kill(host.clone())),
            Step::Restart(host) => self.stage.act_on_hosts(HostAction::Restart(host.clone())),
            Step::Fail(fault) => self.stage.fail_cluster(fault),
            Step::Heal(cluster) => self.stage.heal_cluster(&cluster.cluster),
            Step::Create(create) => {
                let text = self.written_out(&create.yaml)?;
                self.create_object(&create.cluster, &text)
            }
            Step::Edit(change) => self.edit_object(change),
            Step::Remove(object) => self.remove_object(&object.cluster, &object.object),
            Step::Check(expectation) => self.expect(expectation),
        }
    }

    fn quiet(&mut self, quiet: &Quiet) -> Result<(), Trouble> {
        let before = self.stage.writes(&quiet.cluster)?;
        let interval = self.stage.polling_interval();
        self.stage.advance(interval * quiet.polls + interval / 4)?;
        match self.stage.writes(&quiet.cluster)?.since(&before) {
            Some(more) => Err(Trouble::violation(
                "an-idle-pass-writes-nothing",
                format!("the agent of {} wrote while nothing had changed: {more}", quiet.cluster),
            )),
            None => Ok(()),
        }
    }
}

fn name(step: &Step) -> String {
    let text = format!("{step:?}");
    text.chars().take(120).collect()
}
