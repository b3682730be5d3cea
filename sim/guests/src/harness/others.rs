//! Somebody else: what people and other controllers do in the same API servers, at once and without faults.

use http::Method;
use serde_json::Value;
use sindri_apiserver::Request;
use sindri_world::wall_time;

use super::World;
use crate::client::{Kind, name, text};

/// Under which name it is done.
const SOMEONE_ELSE: &str = "kubectl/someone-else";

fn path(kind: Kind, namespace: &str, name: &str) -> String {
    let root = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
    let within = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
    let name = if name.is_empty() { String::new() } else { format!("/{name}") };
    format!("{root}/{}{within}/{}{name}", kind.version, kind.plural)
}

impl World {
    /// One request to an API server; its status and its body.
    pub fn call(&mut self, api: &str, method: Method, target: &str, body: Option<&Value>) -> (u16, Value) {
        let mut request = Request::new(method, target).expect("the target is well formed");
        if let Some(body) = body {
            request = request.with_body("application/json", body.to_string());
        }
        request.headers.user_agent = SOMEONE_ELSE.to_owned();
        let (server, host) = (self.api(api).server.clone(), self.api(api).host);
        let (response, is_changed) = server.with(|machine| {
            let before = machine.revision();
            let response = machine.handle(wall_time(), &request, None);
            (response, machine.revision() != before)
        });
        // Whoever only reads wakes nobody: a host that is entered again and again would hold up time.
        if is_changed {
            self.engine.wake(host);
            self.collect_writes();
        }
        (response.status().unwrap_or(0), response.body_json().unwrap_or_default())
    }

    fn must(&mut self, api: &str, method: Method, target: &str, body: Option<&Value>) -> Value {
        let (status, answer) = self.call(api, method.clone(), target, body);
        assert!(status < 300, "{method} {target}: {status} {answer}");
        answer
    }

    /// Creates an object in the namespace that it names.
    pub fn create(&mut self, api: &str, kind: Kind, object: &Value) -> Value {
        self.must(api, Method::POST, &path(kind, text(object, "/metadata/namespace"), ""), Some(object))
    }

    /// One object, if it is there.
    pub fn get(&mut self, api: &str, kind: Kind, namespace: &str, name: &str) -> Option<Value> {
        let namespace = (!namespace.is_empty()).then_some(namespace);
        self.api(api)
            .server
            .with(|machine| machine.get(kind.group, kind.plural, namespace, name).map(|object| Value::clone(object)))
    }

    /// Every object of a kind.
    pub fn list(&mut self, api: &str, kind: Kind) -> Vec<Value> {
        self.api(api).server.with(|machine| {
            let of_kind = machine.objects().filter(|(key, _)| key.group == kind.group && key.plural == kind.plural);
            of_kind.map(|(_, object)| Value::clone(object)).collect()
        })
    }

    /// Reads an object, changes it and writes it back; nothing happens in between.
    pub fn change(&mut self, api: &str, kind: Kind, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let target = path(kind, namespace, name);
        let mut object = self.must(api, Method::GET, &target, None);
        change(&mut object);
        self.must(api, Method::PUT, &target, Some(&object));
    }

    /// Sets the status of an object.
    pub fn set_status(&mut self, api: &str, kind: Kind, namespace: &str, name: &str, status: Value) {
        let target = path(kind, namespace, name);
        let mut object = self.must(api, Method::GET, &target, None);
        object["status"] = status;
        self.must(api, Method::PUT, &format!("{target}/status"), Some(&object));
    }

    /// Deletes an object, or marks it as being deleted.
    pub fn delete(&mut self, api: &str, kind: Kind, namespace: &str, name: &str) {
        self.must(api, Method::DELETE, &path(kind, namespace, name), None);
    }

    /// Installs a definition and waits until its kind is served.
    pub fn define(&mut self, api: &str, definition: &Value) {
        const DEFINITION: Kind = Kind {
            group: "apiextensions.k8s.io",
            version: "v1",
            kind: "CustomResourceDefinition",
            plural: "customresourcedefinitions",
        };
        self.create(api, DEFINITION, definition);
        self.advance(std::time::Duration::from_secs(1));
        assert!(self.get(api, DEFINITION, "", name(definition)).is_some(), "the definition is there");
    }
}
