//! Random operations on stacks, targets and polls, compared with a small model.
//!
//! The model computes the target state of each agent. Removals get their ids from the broker, so the model takes them
//! from the first poll and then expects the same ids.

use std::collections::{BTreeMap, BTreeSet};

use axum::body::Body;
use http::Request;
use proptest::prelude::*;
use serde_json::Value;

use crate::support::{Api, text};

const AGENTS: usize = 2;
const STACKS: usize = 2;
const CASES: u32 = 384;

#[derive(Clone, Copy, Debug)]
enum Step {
    Target(usize, usize),
    Untarget(usize, usize),
    Submit(usize),
    Marker(usize),
    /// Deletes the stack and creates another with the same name.
    Delete(usize),
    Poll(usize),
    /// Confirms the n-th removal that the agent has received, current or not.
    Confirm(usize, usize),
    Fail(usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (agent, stack) = (0..AGENTS, 0..STACKS);
    let step = prop_oneof![
        3 => (agent.clone(), stack.clone()).prop_map(|(a, s)| Step::Target(a, s)),
        2 => (agent.clone(), stack.clone()).prop_map(|(a, s)| Step::Untarget(a, s)),
        3 => stack.clone().prop_map(Step::Submit),
        1 => stack.clone().prop_map(Step::Marker),
        1 => stack.prop_map(Step::Delete),
        4 => agent.clone().prop_map(Step::Poll),
        3 => (agent.clone(), 0..8_usize).prop_map(|(a, n)| Step::Confirm(a, n)),
        1 => (agent, 0..8_usize).prop_map(|(a, n)| Step::Fail(a, n)),
    ];
    proptest::collection::vec(step, 1..50)
}

/// One stack in the target state of one agent.
#[derive(Clone, Debug, Default)]
struct View {
    targeted: bool,
    /// Highest sequence that the agent has received.
    received: Option<i64>,
    /// The removal that the agent has not confirmed.
    removal: Option<Removal>,
}

#[derive(Clone, Debug, PartialEq)]
enum Removal {
    /// Not yet in a response.
    New,
    Known(Value),
}

#[derive(Default)]
struct Model {
    /// The newest revision of each stack, deleted or not.
    newest: BTreeMap<String, Value>,
    deleted: BTreeSet<String>,
    views: BTreeMap<(usize, String), View>,
    /// Removals that each agent has received, in order.
    seen: [Vec<Value>; AGENTS],
    last: [Option<(String, Vec<Value>)>; AGENTS],
}

impl Model {
    fn view(&mut self, agent: usize, stack: &str) -> &mut View {
        self.views.entry((agent, stack.to_owned())).or_default()
    }

    fn is_marker(&self, stack: &str) -> bool {
        self.newest.get(stack).is_some_and(|revision| revision["is_deletion_marker"] == true)
    }

    fn target(&mut self, agent: usize, stack: &str) {
        let is_marker = self.is_marker(stack);
        let view = self.view(agent, stack);
        view.targeted = true;
        if !is_marker {
            view.removal = None;
        }
    }

    fn untarget(&mut self, agent: usize, stack: &str) {
        let is_marker = self.is_marker(stack);
        let view = self.view(agent, stack);
        view.targeted = false;
        if view.received.is_some() && !is_marker {
            view.removal = Some(Removal::New);
        }
    }

    fn submit(&mut self, stack: &str, revision: Value) {
        let is_marker = revision["is_deletion_marker"] == true;
        self.newest.insert(stack.to_owned(), revision.clone());
        for agent in 0..AGENTS {
            let view = self.view(agent, stack);
            if view.targeted && view.received.is_some() {
                view.removal = is_marker.then(|| Removal::Known(revision.clone()));
            }
        }
    }

    fn delete(&mut self, stack: &str) {
        self.deleted.insert(stack.to_owned());
        for agent in 0..AGENTS {
            let view = self.view(agent, stack);
            view.targeted = false;
            if view.received.is_some() {
                view.removal = Some(Removal::New);
            }
        }
    }

    fn confirm(&mut self, agent: usize, removal: &Value) {
        let view = self.view(agent, removal["stack_id"].as_str().unwrap());
        if view.removal == Some(Removal::Known(removal.clone())) {
            view.removal = None;
        }
    }

    /// Compares a response with the model, and records that the agent has received it.
    fn check(&mut self, agent: usize, response: &[Value]) {
        let sequences: Vec<i64> = response.iter().map(|object| object["sequence_id"].as_i64().unwrap()).collect();
        assert!(sequences.windows(2).all(|pair| pair[0] < pair[1]), "not ascending: {sequences:?}");
        let mut received: BTreeMap<String, Value> = BTreeMap::new();
        for object in response {
            assert!(received.insert(text(&object["stack_id"]), object.clone()).is_none(), "a stack occurs twice");
        }
        let stacks: BTreeSet<String> =
            self.views.keys().filter(|key| key.0 == agent).map(|key| key.1.clone()).collect();
        assert!(received.keys().all(|stack| stacks.contains(stack)), "a stack that is not assigned to this agent");
        for stack in stacks {
            let expected =
                self.newest.get(&stack).filter(|_| !self.is_marker(&stack) && !self.deleted.contains(&stack));
            let expected = expected.cloned();
            let seen = self.seen[agent].clone();
            let view = self.view(agent, &stack);
            match (received.get(&stack), expected.filter(|_| view.targeted), view.removal.clone()) {
                (received, Some(expected), _) => {
                    assert_eq!(received, Some(&expected));
                    view.received = view.received.max(expected["sequence_id"].as_i64());
                }
                (received, None, Some(Removal::Known(removal))) => assert_eq!(received, Some(&removal)),
                (Some(received), None, Some(Removal::New)) => {
                    assert_eq!(received["is_deletion_marker"], true);
                    assert!(!seen.contains(received), "an old removal was sent again");
                    assert!(received["sequence_id"].as_i64() > view.received, "older than what it removes");
                    view.removal = Some(Removal::Known(received.clone()));
                }
                (None, None, Some(Removal::New)) => panic!("the removal of {stack} is missing"),
                (received, None, None) => assert_eq!(received, None, "{stack} is in the target state"),
            }
        }
        for object in response.iter().filter(|object| object["is_deletion_marker"] == true) {
            if !self.seen[agent].contains(object) {
                self.seen[agent].push(object.clone());
            }
        }
    }
}

struct Run {
    api: Api,
    generator: String,
    agents: Vec<(String, String)>,
    stacks: Vec<String>,
    model: Model,
}

impl Run {
    async fn new() -> Self {
        let api = Api::new().await;
        let generator = api.create_generator("shop").await.0;
        let (mut agents, mut stacks) = (Vec::new(), Vec::new());
        for index in 0..AGENTS {
            agents.push(api.create_agent(&format!("agent-{index}"), &[&generator]).await);
        }
        for index in 0..STACKS {
            stacks.push(api.create_stack(&format!("stack-{index}"), &generator).await);
        }
        Self { api, generator, agents, stacks, model: Model::default() }
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Target(agent, stack) => {
                let stack = self.stacks[stack].clone();
                if !self.model.view(agent, &stack).targeted {
                    self.api.target(&self.agents[agent].0, &stack).await;
                    self.model.target(agent, &stack);
                }
            }
            Step::Untarget(agent, stack) => {
                let stack = self.stacks[stack].clone();
                if self.model.view(agent, &stack).targeted {
                    self.api.untarget(&self.agents[agent].0, &stack).await;
                    self.model.untarget(agent, &stack);
                }
            }
            Step::Submit(stack) => self.submit(stack, false).await,
            Step::Marker(stack) => self.submit(stack, true).await,
            Step::Delete(stack) => {
                self.api.delete(&format!("/stacks/{}", self.stacks[stack])).await.expect_status(204);
                self.model.delete(&self.stacks[stack]);
                self.stacks[stack] = self.api.create_stack(&format!("stack-{stack}"), &self.generator).await;
            }
            Step::Poll(agent) => self.poll(agent).await,
            Step::Confirm(agent, which) => {
                if let Some(removal) = self.model.seen[agent].get(which).cloned() {
                    self.api.report(&self.agents[agent], &removal, "SUCCESS").await;
                    self.model.confirm(agent, &removal);
                }
            }
            Step::Fail(agent, which) => {
                if let Some(removal) = self.model.seen[agent].get(which).cloned() {
                    self.api.report(&self.agents[agent], &removal, "FAILURE").await;
                }
            }
        }
    }

    async fn submit(&mut self, stack: usize, is_marker: bool) {
        let revision = self.api.submit(&self.stacks[stack], is_marker).await;
        let newer = |known: &Value| known["sequence_id"].as_i64() < revision["sequence_id"].as_i64();
        assert!(self.model.newest.values().all(newer), "a sequence went back");
        self.model.submit(&self.stacks[stack], revision);
    }

    /// Polls as an agent does, with the ETag of its last response.
    async fn poll(&mut self, agent: usize) {
        let (id, key) = &self.agents[agent];
        let last = self.model.last[agent].clone();
        let mut request = Request::get(format!("/api/v1/agents/{id}/target-state")).header("authorization", key);
        if let Some((etag, _)) = &last {
            request = request.header("if-none-match", etag);
        }
        let response = self.api.send(request.body(Body::empty()).unwrap()).await;
        let objects = match (response.status.as_u16(), last) {
            (304, Some((_, objects))) => objects,
            (200, last) => {
                let objects = response.json().as_array().unwrap().clone();
                assert_ne!(Some(&objects), last.as_ref().map(|last| &last.1), "200 for an unchanged response");
                self.model.last[agent] = Some((response.header("etag").to_owned(), objects.clone()));
                objects
            }
            (status, _) => panic!("status {status}"),
        };
        self.model.check(agent, &objects);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_target_state_equals_the_model(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut run = Run::new().await;
            for step in steps {
                run.step(step).await;
            }
            for agent in 0..AGENTS {
                run.poll(agent).await;
            }
        });
    }
}
