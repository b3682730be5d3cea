//! The simulated API server called in this process, on one thread.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use sindri_apiserver::{ApiServer, Request};

use super::state::{OBJECTS, VALUE_BYTES};
use crate::clock::now;
use crate::figures::{Bar, Figures, median};

const WARM_UP: Duration = Duration::from_millis(500);
const SPAN: Duration = Duration::from_secs(3);
/// One of so many objects has the label that is selected.
const LABELLED_EVERY: usize = 20;
/// Number of lists and copies whose median counts.
const REPETITIONS: usize = 50;
const LIST_BAR: Bar = Bar::AtMost(2.0);
const CLONE_BAR: Bar = Bar::AtMost(5.0);
/// Virtual time of the server; any value would do.
const START_SECOND: i64 = 1_767_225_600;

/// A server at a fixed virtual time.
struct FixedServer {
    server: ApiServer,
    now: Timestamp,
}

impl FixedServer {
    fn new() -> Self {
        let now = Timestamp::from_second(START_SECOND).expect("a timestamp of this century");
        Self { server: ApiServer::new(0, now).without_journal(), now }
    }

    fn send(&mut self, method: Method, target: &str, body: String) {
        let request = Request::new(method, target).expect("the path is a constant");
        let request = request.with_body("application/apply-patch+yaml", body);
        let response = self.server.handle(self.now, &request, None);
        let status = response.status().unwrap_or_default();
        assert!((200..300).contains(&status), "the server answered {status} to {target}");
    }

    fn apply(&mut self, name: &str, labels: &Value, variant: u32) {
        let data = json!({"variant": variant.to_string(), "rest": "x".repeat(VALUE_BYTES)});
        let metadata = json!({"name": name, "labels": labels});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
        let target = format!("/api/v1/namespaces/default/configmaps/{name}?fieldManager=bench&force=true");
        self.send(Method::PATCH, &target, object.to_string());
    }
}

/// Measures applies per second that change an object. The time includes serializing the object, as a client does.
pub fn applies_per_second() -> f64 {
    let mut server = FixedServer::new();
    let mut count = 0_u32;
    let mut apply_for = |span: Duration| {
        let (began, before) = (now(), count);
        while now() - began < span {
            count += 1;
            server.apply("bench-0", &json!({}), count % 2);
        }
        f64::from(count - before) / (now() - began).as_secs_f64()
    };
    apply_for(WARM_UP);
    apply_for(SPAN)
}

/// Measures a list by label and a copy of a state with many objects.
pub fn measure_state(figures: &mut Figures) {
    let mut server = FixedServer::new();
    for number in 0..OBJECTS {
        let labels = if number % LABELLED_EVERY == 0 { json!({"group": "some"}) } else { json!({}) };
        server.apply(&format!("object-{number}"), &labels, 0);
    }
    let list = "/api/v1/namespaces/default/configmaps?labelSelector=group%3Dsome";
    let listing = median_milliseconds(|| server.send(Method::GET, list, String::new()));
    let name = format!("a list of {} of {OBJECTS} objects by label", OBJECTS / LABELLED_EVERY);
    figures.add(&name, listing, "ms", LIST_BAR);
    let mut copies = Vec::with_capacity(REPETITIONS);
    let cloning = median_milliseconds(|| copies.push(server.server.clone()));
    figures.add(&format!("a copy of the state with {OBJECTS} objects"), cloning, "ms", CLONE_BAR);
}

fn median_milliseconds(mut work: impl FnMut()) -> f64 {
    let times = (0..REPETITIONS).map(|_| {
        let began = now();
        work();
        (now() - began).as_secs_f64() * 1e3
    });
    median(times.collect())
}
