//! Carries out the steps of a scenario.

use super::state::Interpreter;
use crate::environment::{HostAction, StepError};
use crate::scenario::{BrokerRef, ClusterRef, Quiet, Step};
use crate::trace;

/// Longest description of a step in the trace.
const DESCRIPTION_CHARS_MAX: usize = 120;

impl Interpreter<'_> {
    /// Carries out every step.
    pub fn run_steps(&mut self) -> Result<(), StepError> {
        for (number, step) in self.scenario.steps.iter() {
            self.kinds.clear();
            trace::record("world", &format!("~ step {number} {}", describe(step)));
            match self.run_step(step) {
                Err(StepError::Rejected(reason)) if self.scenario.world => {
                    trace::record("world", &format!("~ rejected: {reason}"));
                }
                Err(StepError::Failed(reason) | StepError::Rejected(reason)) => {
                    return Err(StepError::Failed(format!("step {number}: {reason}")));
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// Checks the expectations at the end of the scenario; `calm` if no faults were added.
    pub fn check_expectations(&mut self, calm: bool) -> Result<(), StepError> {
        for expectation in &self.scenario.expect {
            self.expect(expectation)?;
        }
        for expectation in self.scenario.expect_calm.iter().filter(|_| calm) {
            self.expect(expectation)?;
        }
        Ok(())
    }

    fn run_step(&mut self, step: &Step) -> Result<(), StepError> {
        let interval = self.environment.polling_interval();
        match step {
            Step::Submit(submit) => self.submit(submit),
            Step::Delete(stack) => self.delete(&stack.stack),
            Step::Target(target) => self.target(&target.stack, &target.agent),
            Step::Untarget(target) => self.untarget(&target.stack, &target.agent),
            Step::Label(target) => self.label(target),
            Step::Unlabel(target) => self.unlabel(target),
            Step::Annotate(annotation) => self.annotate(annotation),
            Step::Propose(propose) => self.propose(propose),
            Step::Approve(stack) => self.decide_approvals(&stack.stack, true),
            Step::Reject(stack) => self.decide_approvals(&stack.stack, false),
            Step::Activate(activation) => self.activate(activation),
            Step::DeleteAgent(agent) => self.delete_agent(&agent.agent),
            Step::CreateAgent(agent) => self.create_agent(&agent.agent),
            Step::Backup => {
                self.expected.borrow_mut().back_up();
                self.environment.act_on_hosts(HostAction::Backup)
            }
            Step::SnapshotEtcd(ClusterRef { cluster }) => {
                self.environment.act_on_hosts(HostAction::SnapshotEtcd(cluster.clone()))
            }
            Step::RestoreEtcd(ClusterRef { cluster }) => {
                self.environment.act_on_hosts(HostAction::RestoreEtcd(cluster.clone()))?;
                let mut expected = self.expected.borrow_mut();
                expected.stacks.values_mut().for_each(|stack| stack.set_cluster_back(cluster));
                Ok(())
            }
            Step::Restore(restore) => {
                self.environment.act_on_hosts(HostAction::Restore { declared: restore.declared })?;
                self.expected.borrow_mut().restore();
                Ok(())
            }
            Step::Stall => self.environment.act_on_hosts(HostAction::Stall(None)),
            Step::Resume => self.environment.act_on_hosts(HostAction::Resume(None)),
            Step::StallFor(BrokerRef { broker }) => {
                self.environment.act_on_hosts(HostAction::Stall(Some(broker.clone())))
            }
            Step::ResumeFor(BrokerRef { broker }) => {
                self.environment.act_on_hosts(HostAction::Resume(Some(broker.clone())))
            }
            Step::Await(condition) => self.wait_for(condition),
            Step::Advance(span) => self.environment.advance(span.0),
            Step::Polls(count) => self.environment.advance(interval * *count + interval / 4),
            Step::Quiet(quiet) => self.check_quiet(quiet),
            Step::Partition(link) => self.environment.act_on_hosts(HostAction::Partition(link.between.clone())),
            Step::Repair(link) => self.environment.act_on_hosts(HostAction::Repair(link.between.clone())),
            Step::Latency(latency) => {
                let action = HostAction::Latency(latency.between.clone(), latency.min.0, latency.max.0);
                self.environment.act_on_hosts(action)
            }
            Step::Kill(host) => self.environment.act_on_hosts(HostAction::Kill(host.clone())),
            Step::Restart(host) => self.environment.act_on_hosts(HostAction::Restart(host.clone())),
            Step::Pause(host) => self.environment.act_on_hosts(HostAction::Pause(host.clone())),
            Step::Continue(host) => self.environment.act_on_hosts(HostAction::Continue(host.clone())),
            Step::Fail(fault) => self.environment.fail_cluster(fault),
            Step::Heal(cluster) => self.environment.heal_cluster(&cluster.cluster),
            Step::Create(create) => {
                let text = self.substitute(&create.yaml)?;
                self.create_object(&create.cluster, &text)
            }
            Step::Edit(edit) => self.edit_object(edit),
            Step::Remove(object) => self.remove_object(&object.cluster, &object.object),
            Step::Check(expectation) => self.expect(expectation),
        }
    }

    /// Checks that there are some polls in a row in which the agent writes nothing. Where waits have extra time, for example
    /// because of added faults, a pass may end late: then the polls are repeated within that time.
    fn check_quiet(&mut self, quiet: &Quiet) -> Result<(), StepError> {
        let interval = self.environment.polling_interval();
        let end = self.environment.now() + self.extra_wait;
        loop {
            let before = self.environment.count_writes(&quiet.cluster)?;
            self.environment.advance(interval * quiet.polls + interval / 4)?;
            let after = self.environment.count_writes(&quiet.cluster)?;
            let Some(writes) = after.describe_since(&before) else { return Ok(()) };
            if self.environment.now() >= end {
                let message = format!("the agent of {} wrote while nothing had changed: {writes}", quiet.cluster);
                return Err(StepError::violation("an-idle-pass-writes-nothing", message));
            }
        }
    }
}

fn describe(step: &Step) -> String {
    let text = format!("{step:?}");
    text.chars().take(DESCRIPTION_CHARS_MAX).collect()
}
