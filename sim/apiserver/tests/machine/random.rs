//! Random requests: nothing panics, and the journal, the objects and the responses are consistent.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};
use sindri_apiserver::{ApiServer, Fault, Request, Response, StoredKey};

use crate::harness::*;

const SEEDS: u64 = 60;
const REQUESTS_PER_SEED: usize = 150;

/// A generator whose sequence is fixed by its seed.
struct Choices(u64);

impl Choices {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % limit as u64).expect("smaller than the limit")
    }

    fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

/// Values of every type, so that any field of an object is sometimes invalid.
fn any_value(choices: &mut Choices, depth: usize) -> Value {
    let names = ["metadata", "name", "spec", "status", "data", "labels", "finalizers", "size", "a", "$patch"];
    match choices.below(if depth == 0 { 6 } else { 9 }) {
        0 => Value::Null,
        1 => json!(choices.below(3)),
        2 => json!(-1.5),
        3 => json!(true),
        4 | 5 => json!(*choices.pick(&["a", "b", "", "x/y", "A B"])),
        6 => (0..choices.below(3)).map(|_| any_value(choices, depth - 1)).collect(),
        _ => (0..choices.below(4))
            .map(|_| (choices.pick(&names).to_string(), any_value(choices, depth - 1)))
            .collect::<BTreeMap<_, _>>()
            .into_iter()
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

fn mostly_valid_object(choices: &mut Choices, plural: &str, name: &str) -> Value {
    let mut object = match plural {
        "configmaps" => config_map(name, &json!({*choices.pick(&["k", "l"]): *choices.pick(&["1", "2"])})),
        "deployments" => deployment(name),
        "gadgets" => gadget(name, &json!({"size": choices.below(3)})),
        _ => namespace(name),
    };
    if choices.below(4) == 0 {
        object["metadata"]["finalizers"] = json!(["example.io/hold"]);
    }
    if choices.below(4) == 0 {
        let uid = "00000000-0000-4000-8000-000000000000";
        object["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": uid}]);
    }
    if choices.below(8) == 0 {
        let part = *choices.pick(&["metadata", "spec", "data", "status"]);
        object[part] = any_value(choices, 3);
    }
    object
}

fn any_request(machine: &Machine, choices: &mut Choices) -> Request {
    let name = *choices.pick(&["a", "b", "default"]);
    let (plural, collection) = *choices.pick(&[
        ("configmaps", CONFIG_MAPS),
        ("configmaps", "/api/v1/namespaces/a/configmaps"),
        ("deployments", DEPLOYMENTS),
        ("gadgets", GADGETS),
        ("namespaces", "/api/v1/namespaces"),
    ]);
    let query = *choices.pick(&[
        "",
        "",
        "&dryRun=All",
        "&force=true",
        "&propagationPolicy=Foreground",
        "&propagationPolicy=Orphan",
    ]);
    let manager = *choices.pick(&["one", "two"]);
    let object = format!("{collection}/{name}?fieldManager={manager}{query}");
    let status = format!("{collection}/{name}/status?fieldManager={manager}{query}");
    let body = mostly_valid_object(choices, plural, name);
    let media = *choices.pick(&[MERGE, STRATEGIC, "application/json-patch+json"]);
    match choices.below(10) {
        0 => machine.request(
            Method::POST,
            &format!("{collection}?fieldManager={manager}{query}"),
            "application/json",
            &body,
        ),
        1 => machine.request(Method::PUT, &object, "application/json", &body),
        2 => machine.request(Method::PATCH, &object, media, &any_value(choices, 4)),
        3 => machine.request(Method::PATCH, &object, MERGE, &json!({"metadata": {"finalizers": null}})),
        4 => machine.request(Method::PATCH, &status, media, &json!({"status": any_value(choices, 2)})),
        5 => machine.request(Method::DELETE, &object, "", &Value::Null),
        6 => machine.request(Method::DELETE, &format!("{collection}?labelSelector=nothing"), "", &Value::Null),
        _ => machine.request(Method::PATCH, &object, APPLY, &body),
    }
}

/// Replays the journal onto `state` and checks that each write follows from the state before it.
fn replay(state: &mut BTreeMap<StoredKey, Arc<Value>>, server: &mut ApiServer, newest: &mut u64) {
    for write in server.take_journal() {
        assert!(write.resource_version > *newest, "resource versions only grow");
        *newest = write.resource_version;
        assert_eq!(state.get(&write.key), write.before.as_ref(), "{:?}", write.key);
        assert_ne!(write.before, write.after, "a write changes something");
        match write.after {
            Some(after) => drop(state.insert(StoredKey::clone(&write.key), after)),
            None => drop(state.remove(&write.key)),
        }
    }
}

fn snapshot(server: &ApiServer) -> BTreeMap<StoredKey, Arc<Value>> {
    server.objects().map(|(key, object)| (key.clone(), object.clone())).collect()
}

#[test]
fn random_requests_keep_the_journal_and_the_objects_consistent() {
    for seed in 0..SEEDS {
        let mut choices = Choices(seed);
        let mut machine = Machine::new();
        machine.create_gadget_crd();
        let mut state = snapshot(&machine.server);
        let mut newest = machine.server.revision();
        for _ in 0..REQUESTS_PER_SEED {
            let request = any_request(&machine, &mut choices);
            let fault = (choices.below(10) == 0).then_some(Fault::LoseResponse);
            let before = machine.server.revision();
            let mut twin = machine.server.clone();
            let response = machine.server.handle(machine.now, &request, fault.as_ref());
            assert_eq!(
                twin.handle(machine.now, &request, fault.as_ref()),
                response,
                "seed {seed}: a clone returns the same response"
            );
            let refused = response.status().is_some_and(|status| status >= 400);
            if refused || request.query.contains_key("dryRun") {
                assert_eq!(machine.server.revision(), before, "seed {seed}: {request:?} wrote: {response:?}");
            }
            assert!(!matches!(response, Response::Watch(_)), "no watch was requested");
            if choices.below(5) == 0 {
                machine.advance(300);
            }
            replay(&mut state, &mut machine.server, &mut newest);
            assert_eq!(state, snapshot(&machine.server), "seed {seed}");
        }
        machine.advance(60_000);
        assert_eq!(machine.server.next_tick(), None, "seed {seed}: the control plane becomes idle");
    }
}

#[test]
fn an_apply_that_was_accepted_is_idempotent() {
    for seed in 0..SEEDS {
        let mut choices = Choices(seed);
        let mut machine = Machine::new();
        machine.create_gadget_crd();
        for _ in 0..REQUESTS_PER_SEED {
            let request = any_request(&machine, &mut choices);
            let applied = request.headers.content_type == APPLY && !request.query.contains_key("dryRun");
            let response = machine.send(&request);
            // An apply of an empty object leaves no manager, and the next apply takes the object for one that was never
            // applied. Like the real server, this one then adds `before-first-apply`.
            let tracked = response.status < 300 && response.body["metadata"].get("managedFields").is_some();
            // An apply that removes the last finalizer of an object that is being deleted removes the object.
            let is_kept = response.body["metadata"].get("deletionTimestamp").is_none();
            if applied && tracked && is_kept {
                let revision = machine.server.revision();
                machine.now += jiff::SignedDuration::from_millis(1);
                let again = machine.send(&request);
                assert_eq!((again.status, machine.server.revision()), (200, revision), "seed {seed}: {}", again.body);
            }
            machine.advance(2_000);
        }
    }
}
