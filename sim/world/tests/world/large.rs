//! Much of everything: an idle poll stays what it was, and a large stack is applied and removed.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use http::Method;
use serde_json::json;
use sindri_world::engine::Arm;
use sindri_world::isolate;
use sindri_world::ledger::Ledger;
use sindri_world::play::Play;
use sindri_world::scenario::{Await, Fleet, Library, Scenario, Span, StackRef, Step, Submit};
use sindri_world::stage::{ClusterCall, Options, SimulatedStage, Stage};

const INTERVAL: Duration = Duration::from_secs(30);
const POLLS: u32 = 4;

struct World {
    stage: SimulatedStage,
    ledger: Rc<RefCell<Ledger>>,
}

impl World {
    fn new() -> Self {
        let ledger = Rc::new(RefCell::new(Ledger::default()));
        let options = Options {
            arm: Arm::Fast,
            seed: 0,
            agents: vec!["east".to_owned()],
            replicas: 1,
            namespace: None,
            brokers: 1,
            clocks_ahead: Duration::ZERO,
            polling_interval: INTERVAL,
            kill_at: None,
            chaos: Vec::new(),
        };
        Self { stage: SimulatedStage::new(options, ledger.clone()).unwrap(), ledger }
    }

    fn play(&mut self, steps: Vec<Step>) {
        let scenario = Scenario::of_steps(Fleet::of(vec!["east".to_owned()]), steps);
        let library = Library::empty();
        Play::new(&mut self.stage, &library, &scenario, self.ledger.clone(), Duration::ZERO).steps().unwrap();
    }

    /// What the agent asks its cluster in some polls in which nothing happens.
    fn idle(&mut self) -> Vec<String> {
        let before = self.stage.asked("east", "").unwrap().len();
        self.stage.advance(INTERVAL * POLLS).unwrap();
        let asked = self.stage.asked("east", "").unwrap();
        let mut lines: Vec<String> = asked[before..].iter().map(|asked| asked.line.clone()).collect();
        lines.sort();
        lines
    }

    fn call(&mut self, method: Method, target: &str, body: &serde_json::Value) -> u16 {
        let body = body.to_string().into_bytes();
        let call = ClusterCall { method, target: target.to_owned(), content_type: "application/json", body };
        self.stage.call_cluster("east", call).unwrap().0
    }
}

fn submit(stack: &str, objects: usize) -> Step {
    let object = |number| {
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {stack}-{number}, namespace: default}}}}\n")
    };
    let yaml = (0..objects).map(object).collect::<Vec<_>>().join("---\n");
    Step::Submit(Submit { stack: stack.to_owned(), bundle: None, yaml: Some(yaml), to: None })
}

fn wait(stack: &str, gone: bool) -> Step {
    Step::Await(Await {
        stack: stack.to_owned(),
        agent: None,
        applied: (!gone).then_some(1),
        gone,
        failed: None,
        condition: None,
        within: Some(Span(Duration::from_secs(600))),
    })
}

#[test]
fn an_idle_poll_asks_no_more_among_ten_thousand_objects_of_others_and_with_five_hundred_stacks() {
    isolate(0, || {
        let mut world = World::new();
        world.play(vec![submit("first", 3), wait("first", false)]);
        world.idle();
        let before = world.idle();
        for number in 0..10_000 {
            let object = json!({"metadata": {"name": format!("other-{number}")}, "data": {"a": "b"}});
            assert_eq!(world.call(Method::POST, "/api/v1/namespaces/default/configmaps", &object), 201);
        }
        world.play((1..500).map(|number| submit(&format!("stack-{number}"), 1)).collect());
        world.play((1..500).map(|number| wait(&format!("stack-{number}"), false)).collect());
        world.idle();
        assert_eq!(world.idle(), before);
        assert!(before.iter().all(|line| line.contains("leases") || line.contains("/version")), "{before:#?}");
    });
}

#[test]
fn ten_thousand_objects_of_one_stack_are_applied_and_removed() {
    isolate(0, || {
        let mut world = World::new();
        world.play(vec![submit("many", 10_000), wait("many", false)]);
        let written = world.stage.written("east").unwrap();
        let made = written.iter().filter(|write| write.starts_with("create ConfigMap default/many-")).count();
        assert_eq!(made, 10_000);
        world.play(vec![Step::Delete(StackRef { stack: "many".to_owned() }), wait("many", true)]);
    });
}
