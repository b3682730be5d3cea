//! Random sequences of changes and polls, compared with a small model of the target state.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sindri_model::wire::EventStatus;
use sindri_model::{AgentId, RevisionId, StackId};

use crate::support::{World, revision_ids, write_context};

const AGENTS: usize = 2;
const STACKS: usize = 3;
const LABELS: [&str; 2] = ["a", "b"];
const CASES_SQLITE: u32 = 200;
/// Fewer, because PostgreSQL is slower by an order of magnitude.
const CASES_POSTGRES: u32 = 12;

#[derive(Clone, Copy, Debug)]
enum Step {
    Target(usize, usize, bool),
    LabelAgent(usize, usize, bool),
    LabelStack(usize, usize, bool),
    Register(usize, bool),
    Submit(usize),
    Marker(usize),
    Delete(usize),
    Poll(usize),
    /// Reports success of the n-th revision or removal of the last poll.
    Confirm(usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (agent, stack, label) = (0..AGENTS, 0..STACKS, 0..LABELS.len());
    let step = prop_oneof![
        3 => (agent.clone(), stack.clone(), any::<bool>()).prop_map(|(a, s, on)| Step::Target(a, s, on)),
        3 => (agent.clone(), label.clone(), any::<bool>()).prop_map(|(a, l, on)| Step::LabelAgent(a, l, on)),
        3 => (stack.clone(), label, any::<bool>()).prop_map(|(s, l, on)| Step::LabelStack(s, l, on)),
        1 => (agent.clone(), any::<bool>()).prop_map(|(a, on)| Step::Register(a, on)),
        4 => stack.clone().prop_map(Step::Submit),
        1 => stack.clone().prop_map(Step::Marker),
        1 => stack.prop_map(Step::Delete),
        5 => agent.clone().prop_map(Step::Poll),
        4 => (agent, 0..STACKS).prop_map(|(a, n)| Step::Confirm(a, n)),
    ];
    proptest::collection::vec(step, 1..60)
}

/// Removal of a stack on an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Removal {
    #[default]
    None,
    /// With its id, after the agent has received it.
    Outstanding(Option<RevisionId>),
    Confirmed,
}

#[derive(Default)]
struct Model {
    agent_labels: [[bool; LABELS.len()]; AGENTS],
    stack_labels: [[bool; LABELS.len()]; STACKS],
    is_registered: [bool; AGENTS],
    targets: [[bool; STACKS]; AGENTS],
    /// The newest revision of each stack, with true for a deletion marker.
    newest: [Option<(RevisionId, bool)>; STACKS],
    is_deleted: [bool; STACKS],
    received: [[bool; STACKS]; AGENTS],
    removal: [[Removal; STACKS]; AGENTS],
    polled: [Vec<(RevisionId, usize, bool)>; AGENTS],
}

impl Model {
    fn is_wanted(&self, agent: usize, stack: usize) -> bool {
        let mut labels = self.agent_labels[agent].iter().zip(&self.stack_labels[stack]);
        let by_label = self.is_registered[agent] && labels.any(|(one, other)| *one && *other);
        !self.is_deleted[stack] && (self.targets[agent][stack] || by_label)
    }

    fn is_present(&self, agent: usize, stack: usize) -> bool {
        self.is_wanted(agent, stack) && self.newest[stack].is_some_and(|(_, is_marker)| !is_marker)
    }

    fn pairs() -> impl Iterator<Item = (usize, usize)> {
        (0..AGENTS).flat_map(|agent| (0..STACKS).map(move |stack| (agent, stack)))
    }

    /// Changes assignments: a received stack that is no longer wanted must be removed.
    fn change(&mut self, change: impl FnOnce(&mut Self)) {
        let before: Vec<_> = Self::pairs().filter(|(agent, stack)| self.is_wanted(*agent, *stack)).collect();
        change(self);
        for (agent, stack) in Self::pairs() {
            let removal = self.removal[agent][stack];
            if self.is_present(agent, stack) {
                self.removal[agent][stack] = Removal::None;
            } else if before.contains(&(agent, stack))
                && !self.is_wanted(agent, stack)
                && self.received[agent][stack]
                && removal == Removal::None
            {
                self.removal[agent][stack] = Removal::Outstanding(None);
            }
        }
    }

    /// Requires a new confirmation after a deletion marker or the deletion of the stack.
    fn require_removal(&mut self, stack: usize, also_unwanted: bool) {
        for agent in 0..AGENTS {
            if self.received[agent][stack] && (also_unwanted || self.is_wanted(agent, stack)) {
                self.removal[agent][stack] = Removal::Outstanding(None);
            }
        }
    }

    fn confirm(&mut self, agent: usize, (revision, stack, _): (RevisionId, usize, bool)) {
        let removal = &mut self.removal[agent][stack];
        if *removal == Removal::Outstanding(Some(revision)) {
            *removal = Removal::Confirmed;
        }
    }
}

/// A store and the model, which receive the same steps.
struct Comparison {
    world: World,
    agents: [AgentId; AGENTS],
    stacks: Vec<StackId>,
    model: Model,
}

impl Comparison {
    async fn new(world: World) -> Self {
        let agents = world.add_agents().await;
        let mut stacks = Vec::new();
        for index in 0..STACKS {
            stacks.push(world.add_stack(&format!("stack-{index}")).await);
        }
        let model = Model { is_registered: [true; AGENTS], ..Default::default() };
        Self { world, agents, stacks, model }
    }

    async fn run(&mut self, step: Step) {
        let (store, model) = (&self.world.store, &mut self.model);
        match step {
            Step::Target(a, s, on) if !model.is_deleted[s] => {
                let done = if on {
                    self.world.target(self.agents[a], self.stacks[s]).await.is_ok()
                } else {
                    store.remove_target(write_context(), self.agents[a], self.stacks[s]).await.is_ok()
                };
                let is_possible = model.targets[a][s] != on && (!on || model.is_registered[a]);
                assert_eq!(done, is_possible, "{step:?}");
                if done {
                    model.change(|model| model.targets[a][s] = on);
                }
            }
            Step::LabelAgent(a, l, on) if model.agent_labels[a][l] != on => {
                if on {
                    self.world.label_agent(self.agents[a], LABELS[l]).await;
                } else {
                    store.remove_agent_label(write_context(), self.agents[a], LABELS[l].to_owned()).await.unwrap();
                }
                model.change(|model| model.agent_labels[a][l] = on);
            }
            Step::LabelStack(s, l, on) if model.stack_labels[s][l] != on && !model.is_deleted[s] => {
                if on {
                    self.world.label_stack(self.stacks[s], LABELS[l]).await;
                } else {
                    store.remove_stack_label(write_context(), self.stacks[s], LABELS[l].to_owned()).await.unwrap();
                }
                model.change(|model| model.stack_labels[s][l] = on);
            }
            Step::Register(a, on) if model.is_registered[a] != on => {
                if on {
                    store.register_agent(write_context(), self.world.generator, self.agents[a]).await.unwrap();
                } else {
                    store.unregister_agent(write_context(), self.world.generator, self.agents[a]).await.unwrap();
                }
                model.change(|model| model.is_registered[a] = on);
            }
            Step::Submit(s) if !model.is_deleted[s] => {
                let id = self.world.submit(self.stacks[s]).await.id;
                model.change(|model| model.newest[s] = Some((id, false)));
            }
            Step::Marker(s) if !model.is_deleted[s] => {
                let id = self.world.submit_marker(self.stacks[s]).await.id;
                model.change(|model| model.newest[s] = Some((id, true)));
                model.require_removal(s, false);
            }
            Step::Delete(s) if !model.is_deleted[s] => {
                store.delete_stack(write_context(), self.stacks[s]).await.unwrap();
                model.is_deleted[s] = true;
                model.require_removal(s, true);
            }
            Step::Poll(a) => self.poll(a).await,
            Step::Confirm(a, n) => {
                if let Some(reported) = model.polled[a].get(n).copied() {
                    self.world.report(self.agents[a], reported.0, EventStatus::Success).await.unwrap();
                    model.confirm(a, reported);
                }
            }
            Step::Target(..)
            | Step::LabelAgent(..)
            | Step::LabelStack(..)
            | Step::Register(..)
            | Step::Submit(..)
            | Step::Marker(..)
            | Step::Delete(..) => {}
        }
        self.compare().await;
    }

    async fn poll(&mut self, agent: usize) {
        let version = self.world.store.get_target_version(self.agents[agent]).await.unwrap();
        let state = self.world.store.deliver_target_state(self.agents[agent]).await.unwrap();
        assert_eq!(state.version, version, "a poll changes nothing");
        let model = &mut self.model;
        model.polled[agent].clear();
        for stack in 0..STACKS {
            model.received[agent][stack] |= model.is_present(agent, stack);
        }
        for target in &state.revisions {
            let stack = self.stacks.iter().position(|stack| *stack == target.revision.stack_id).unwrap();
            let is_removal = target.revision.is_deletion_marker;
            model.polled[agent].push((target.revision.id, stack, is_removal));
            if let (Removal::Outstanding(known @ None), true) = (&mut model.removal[agent][stack], is_removal) {
                *known = Some(target.revision.id);
            }
        }
    }

    /// Checks that the target state of each agent is that of the model.
    async fn compare(&self) {
        for agent in 0..AGENTS {
            let state = self.world.store.get_target_state(self.agents[agent]).await.unwrap();
            assert!(state.revisions.is_sorted_by_key(|target| target.revision.sequence_id));
            let mut reported: Vec<_> = state.revisions.iter().map(|target| &target.revision).collect();
            for stack in 0..STACKS {
                let here = reported.iter().position(|revision| revision.stack_id == self.stacks[stack]);
                let here =
                    here.map(|index| reported.remove(index)).map(|revision| (revision.id, revision.is_deletion_marker));
                let expected = match (self.model.is_present(agent, stack), self.model.removal[agent][stack]) {
                    (true, _) => self.model.newest[stack],
                    (false, Removal::Outstanding(Some(id))) => Some((id, true)),
                    (false, Removal::Outstanding(None)) => {
                        assert!(
                            here.is_some_and(|(_, is_removal)| is_removal),
                            "agent {agent} has no removal of stack {stack}"
                        );
                        here
                    }
                    (false, Removal::None | Removal::Confirmed) => None,
                };
                assert_eq!(here, expected, "agent {agent}, stack {stack}");
            }
            assert!(reported.is_empty());
            assert_eq!(revision_ids(&state).len(), state.revisions.len());
        }
    }
}

fn check(cases: u32, runtime: &tokio::runtime::Runtime, world: impl Fn() -> Option<World>) {
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&steps(), |steps| {
        let Some(world) = world() else { return Ok(()) };
        runtime.block_on(async {
            let mut comparison = Comparison::new(world).await;
            for step in steps {
                comparison.run(step).await;
            }
        });
        Ok(())
    });
    outcome.unwrap();
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn target_states_in_sqlite_match_the_model() {
    check(CASES_SQLITE, &runtime(), || Some(World::sqlite()));
}

#[test]
fn target_states_in_postgres_match_the_model() {
    let runtime = runtime();
    check(CASES_POSTGRES, &runtime, || runtime.block_on(World::postgres()));
}
