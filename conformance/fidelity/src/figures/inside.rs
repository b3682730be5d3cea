//! The machine itself, asked in this process on one thread.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde_json::json;
use sindri_apiserver::{ApiServer, Request};
use sindri_figures::{Bar, Sheet, median};
use sindri_record::figures::now;

use super::{OBJECTS, VALUE_BYTES};

const WARM: Duration = Duration::from_millis(500);
const SPAN: Duration = Duration::from_secs(3);
/// Which of the objects have a label.
const LABELLED_EVERY: usize = 20;
const LOOKS: usize = 50;
const LIST_BAR: Bar = Bar::AtMost(2.0);
const CLONE_BAR: Bar = Bar::AtMost(5.0);
/// Any moment.
const BEGIN: i64 = 1_767_225_600;

struct Machine {
    server: ApiServer,
    now: Timestamp,
}

impl Machine {
    fn new() -> Self {
        let now = Timestamp::from_second(BEGIN).expect("a moment of this century");
        Self { server: ApiServer::new(0, now).without_journal(), now }
    }

    fn send(&mut self, method: Method, target: &str, body: String) {
        let request = Request::new(method, target).expect("a path that is written here");
        let request = request.with_body("application/apply-patch+yaml", body);
        let response = self.server.handle(self.now, &request, None);
        let status = response.status().unwrap_or_default();
        assert!((200..300).contains(&status), "{target} is answered with {status}");
    }

    fn apply(&mut self, name: &str, labels: &serde_json::Value, variant: u32) {
        let data = json!({"variant": variant.to_string(), "rest": "x".repeat(VALUE_BYTES)});
        let metadata = json!({"name": name, "labels": labels});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
        let target = format!("/api/v1/namespaces/default/configmaps/{name}?fieldManager=bench&force=true");
        self.send(Method::PATCH, &target, object.to_string());
    }
}

/// Applies that change something, one after the other, each with what a client does to write it.
pub fn applies_per_second() -> f64 {
    let mut machine = Machine::new();
    let mut count = 0_u32;
    let mut go_on_for = |span: Duration| {
        let (began, before) = (now(), count);
        while now() - began < span {
            count += 1;
            machine.apply("bench-0", &json!({}), count % 2);
        }
        f64::from(count - before) / (now() - began).as_secs_f64()
    };
    go_on_for(WARM);
    go_on_for(SPAN)
}

/// A state of many objects: what it takes to look into it, and to have it twice.
pub fn measure_state(sheet: &mut Sheet) {
    let mut machine = Machine::new();
    for number in 0..OBJECTS {
        let labels = if number % LABELLED_EVERY == 0 { json!({"group": "some"}) } else { json!({}) };
        machine.apply(&format!("object-{number}"), &labels, 0);
    }
    let list = "/api/v1/namespaces/default/configmaps?labelSelector=group%3Dsome";
    let milliseconds = |looked: &mut dyn FnMut()| {
        let times = (0..LOOKS).map(|_| {
            let began = now();
            looked();
            (now() - began).as_secs_f64() * 1e3
        });
        median(times.collect())
    };
    let listing = milliseconds(&mut || machine.send(Method::GET, list, String::new()));
    let name = format!("a list of {} of {OBJECTS} objects by label", OBJECTS / LABELLED_EVERY);
    sheet.add(&name, listing, "ms", LIST_BAR);
    let mut copies = Vec::with_capacity(LOOKS);
    let cloning = milliseconds(&mut || copies.push(machine.server.clone()));
    sheet.add(&format!("a copy of the state with {OBJECTS} objects"), cloning, "ms", CLONE_BAR);
}
