//! Random lives of stacks, labels, targets, registrations and polls against a model of a few lines.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sindri_model::wire::EventStatus;
use sindri_model::{AgentId, RevisionId, StackId};

use crate::support::{World, stamp, told};

const AGENTS: usize = 2;
const STACKS: usize = 3;
const LABELS: [&str; 2] = ["a", "b"];
/// PostgreSQL is slower by an order of magnitude.
const CASES_SQLITE: u32 = 200;
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
    /// Reports success of the n-th thing that the agent was told last.
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

/// What an agent owes of a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Removal {
    #[default]
    None,
    /// With its id, once the agent was told.
    Outstanding(Option<RevisionId>),
    Confirmed,
}

#[derive(Default)]
struct Model {
    agent_labels: [[bool; LABELS.len()]; AGENTS],
    stack_labels: [[bool; LABELS.len()]; STACKS],
    is_registered: [bool; AGENTS],
    targets: [[bool; STACKS]; AGENTS],
    /// The newest revision of each stack, and whether it is a marker.
    newest: [Option<(RevisionId, bool)>; STACKS],
    is_deleted: [bool; STACKS],
    received: [[bool; STACKS]; AGENTS],
    removal: [[Removal; STACKS]; AGENTS],
    told: [Vec<(RevisionId, usize, bool)>; AGENTS],
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

    /// Changes what is wanted: what was received and no longer is must be removed.
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

    /// A marker, or the end of the stack: to be confirmed anew.
    fn mark(&mut self, stack: usize, also_unwanted: bool) {
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

/// The store and the model, side by side.
struct Both {
    world: World,
    agents: [AgentId; AGENTS],
    stacks: Vec<StackId>,
    model: Model,
}

impl Both {
    async fn new(world: World) -> Self {
        let agents = world.with_agents().await;
        let mut stacks = Vec::new();
        for index in 0..STACKS {
            stacks.push(world.add_stack(&format!("stack-{index}")).await);
        }
        let model = Model { is_registered: [true; AGENTS], ..Default::default() };
        Self { world, agents, stacks, model }
    }

    async fn take(&mut self, step: Step) {
        let (store, model) = (&self.world.store, &mut self.model);
        match step {
            Step::Target(a, s, on) if !model.is_deleted[s] => {
                let done = if on {
                    self.world.target(self.agents[a], self.stacks[s]).await.is_ok()
                } else {
                    store.remove_target(stamp(), self.agents[a], self.stacks[s]).await.is_ok()
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
                    store.remove_agent_label(stamp(), self.agents[a], LABELS[l].to_owned()).await.unwrap();
                }
                model.change(|model| model.agent_labels[a][l] = on);
            }
            Step::LabelStack(s, l, on) if model.stack_labels[s][l] != on && !model.is_deleted[s] => {
                if on {
                    self.world.label_stack(self.stacks[s], LABELS[l]).await;
                } else {
                    store.remove_stack_label(stamp(), self.stacks[s], LABELS[l].to_owned()).await.unwrap();
                }
                model.change(|model| model.stack_labels[s][l] = on);
            }
            Step::Register(a, on) if model.is_registered[a] != on => {
                if on {
                    store.register(stamp(), self.world.generator, self.agents[a]).await.unwrap();
                } else {
                    store.unregister(stamp(), self.world.generator, self.agents[a]).await.unwrap();
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
                model.mark(s, false);
            }
            Step::Delete(s) if !model.is_deleted[s] => {
                store.delete_stack(stamp(), self.stacks[s]).await.unwrap();
                model.is_deleted[s] = true;
                model.mark(s, true);
            }
            Step::Poll(a) => self.poll(a).await,
            Step::Confirm(a, n) => {
                if let Some(said) = model.told[a].get(n).copied() {
                    self.world.report(self.agents[a], said.0, EventStatus::Success).await.unwrap();
                    model.confirm(a, said);
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
        let version = self.world.store.version_of(self.agents[agent]).await.unwrap();
        let desired = self.world.store.hand_out(self.agents[agent]).await.unwrap();
        assert_eq!(desired.version, version, "a poll changes nothing");
        let model = &mut self.model;
        model.told[agent].clear();
        for stack in 0..STACKS {
            model.received[agent][stack] |= model.is_present(agent, stack);
        }
        for desired in &desired.objects {
            let stack = self.stacks.iter().position(|stack| *stack == desired.object.stack_id).unwrap();
            let is_removal = desired.object.is_deletion_marker;
            model.told[agent].push((desired.object.id, stack, is_removal));
            if let (Removal::Outstanding(known @ None), true) = (&mut model.removal[agent][stack], is_removal) {
                *known = Some(desired.object.id);
            }
        }
    }

    /// What the store would say to each agent is what the model says.
    async fn compare(&self) {
        for agent in 0..AGENTS {
            let desired = self.world.store.desired_set(self.agents[agent]).await.unwrap();
            assert!(desired.objects.is_sorted_by_key(|desired| desired.object.sequence_id));
            let mut said: Vec<_> = desired.objects.iter().map(|desired| &desired.object).collect();
            for stack in 0..STACKS {
                let here = said.iter().position(|object| object.stack_id == self.stacks[stack]);
                let here = here.map(|index| said.remove(index)).map(|object| (object.id, object.is_deletion_marker));
                let expected = match (self.model.is_present(agent, stack), self.model.removal[agent][stack]) {
                    (true, _) => self.model.newest[stack],
                    (false, Removal::Outstanding(Some(id))) => Some((id, true)),
                    (false, Removal::Outstanding(None)) => {
                        assert!(here.is_some_and(|(_, is_removal)| is_removal), "agent {agent} owes stack {stack}");
                        here
                    }
                    (false, Removal::None | Removal::Confirmed) => None,
                };
                assert_eq!(here, expected, "agent {agent}, stack {stack}");
            }
            assert!(said.is_empty());
            assert_eq!(told(&desired).len(), desired.objects.len());
        }
    }
}

fn check(cases: u32, runtime: &tokio::runtime::Runtime, world: impl Fn() -> Option<World>) {
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&steps(), |steps| {
        let Some(world) = world() else { return Ok(()) };
        runtime.block_on(async {
            let mut both = Both::new(world).await;
            for step in steps {
                both.take(step).await;
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
fn sqlite_tells_every_agent_what_the_model_says() {
    check(CASES_SQLITE, &runtime(), || Some(World::sqlite()));
}

#[test]
fn postgres_tells_every_agent_what_the_model_says() {
    let runtime = runtime();
    check(CASES_POSTGRES, &runtime, || runtime.block_on(World::postgres()));
}
