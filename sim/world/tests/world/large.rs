//! Large worlds: an idle poll costs no more requests, and a large stack is applied and removed.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use http::Method;
use serde_json::json;
use sindri_world::engine::EngineKind;
use sindri_world::environment::{ClusterCall, Environment, Options, SimulatedWorld};
use sindri_world::expected_state::ExpectedState;
use sindri_world::interpreter::Interpreter;
use sindri_world::isolate;
use sindri_world::journal::Operation;
use sindri_world::scenario::{Await, Fleet, Library, Scenario, Span, StackRef, Step, Submit};

const INTERVAL: Duration = Duration::from_secs(30);
const POLLS: u32 = 4;

struct LargeWorld {
    world: SimulatedWorld,
    expected: Rc<RefCell<ExpectedState>>,
}

impl LargeWorld {
    fn new() -> Self {
        let expected = Rc::new(RefCell::new(ExpectedState::default()));
        let options = Options::new(EngineKind::Fast, 0, fleet(), INTERVAL);
        Self { world: SimulatedWorld::new(options, expected.clone()).unwrap(), expected }
    }

    fn run(&mut self, steps: Vec<Step>) {
        let scenario = Scenario::from_steps(fleet(), steps);
        let library = Library::empty();
        Interpreter::new(&mut self.world, &library, &scenario, self.expected.clone(), Duration::ZERO)
            .run_steps()
            .unwrap();
    }

    /// Lists the requests of the agent to its cluster in some polls in which nothing happens.
    fn list_idle_requests(&mut self) -> Vec<String> {
        let before = self.world.list_requests("east", "").unwrap().len();
        self.world.advance(INTERVAL * POLLS).unwrap();
        let requests = self.world.list_requests("east", "").unwrap();
        let mut lines: Vec<String> = requests[before..].iter().map(|request| request.line.clone()).collect();
        lines.sort();
        lines
    }

    fn call(&mut self, method: Method, target: &str, body: &serde_json::Value) -> u16 {
        let body = body.to_string().into_bytes();
        let call = ClusterCall { method, target: target.to_owned(), content_type: "application/json", body };
        self.world.call_cluster("east", call).unwrap().0
    }
}

fn fleet() -> Fleet {
    Fleet::from_agents(vec!["east".to_owned()])
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
fn an_idle_poll_makes_no_more_requests_with_ten_thousand_foreign_objects_and_five_hundred_stacks() {
    isolate(0, || {
        let mut world = LargeWorld::new();
        world.run(vec![submit("first", 3), wait("first", false)]);
        world.list_idle_requests();
        let before = world.list_idle_requests();
        for number in 0..10_000 {
            let object = json!({"metadata": {"name": format!("other-{number}")}, "data": {"a": "b"}});
            assert_eq!(world.call(Method::POST, "/api/v1/namespaces/default/configmaps", &object), 201);
        }
        world.run((1..500).map(|number| submit(&format!("stack-{number}"), 1)).collect());
        world.run((1..500).map(|number| wait(&format!("stack-{number}"), false)).collect());
        world.list_idle_requests();
        let split = |lines: Vec<String>| -> (Vec<String>, Vec<String>) {
            lines.into_iter().partition(|line| line.contains("/version"))
        };
        let ((heartbeats_before, before), (heartbeats, after)) = (split(before), split(world.list_idle_requests()));
        assert_eq!(after, before);
        assert!(before.iter().all(|line| line.contains("leases")), "{before:#?}");
        // Heartbeats have an interval of their own, so that the same span may contain one more of them.
        assert!(heartbeats.len() <= heartbeats_before.len() + 1, "{heartbeats:#?}");
    });
}

#[test]
fn ten_thousand_objects_of_one_stack_are_applied_and_removed() {
    isolate(0, || {
        let mut world = LargeWorld::new();
        world.run(vec![submit("many", 10_000), wait("many", false)]);
        let writes = world.world.list_writes("east").unwrap();
        let created = writes.iter().filter(|write| {
            write.operation == Operation::Create && write.key.kind == "ConfigMap" && write.key.name.starts_with("many-")
        });
        assert_eq!(created.count(), 10_000);
        world.run(vec![Step::Delete(StackRef { stack: "many".to_owned() }), wait("many", true)]);
    });
}
