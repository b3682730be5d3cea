//! Another client of the same API servers. Its requests take no time and never fail because of faults.

use http::Method;
use serde_json::Value;
use sindri_apiserver::Request;
use sindri_world::wall_time;

use super::world::World;
use crate::client::ResourceKind;
use crate::object::{name, text};

/// User agent of the other client.
const USER_AGENT: &str = "kubectl/someone-else";

fn url_path(kind: ResourceKind, namespace: &str, name: &str) -> String {
    let root = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
    let scope = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
    let name = if name.is_empty() { String::new() } else { format!("/{name}") };
    format!("{root}/{}{scope}/{}{name}", kind.version, kind.plural)
}

impl World {
    /// Sends a request to an API server, and returns status and body of the response.
    pub fn call(&mut self, api: &str, method: Method, target: &str, body: Option<&Value>) -> (u16, Value) {
        let mut request = Request::new(method, target).expect("the target is well formed");
        if let Some(body) = body {
            request = request.with_body("application/json", body.to_string());
        }
        request.headers.user_agent = USER_AGENT.to_owned();
        let (server, host) = (self.api(api).server.clone(), self.api(api).host);
        let (response, is_changed) = server.with(|machine| {
            let before = machine.revision();
            let response = machine.handle(wall_time(), &request, None);
            (response, machine.revision() != before)
        });
        // A read does not wake the host: waking it again and again would stop virtual time.
        if is_changed {
            self.engine.wake(host);
            self.collect_writes();
        }
        (response.status().unwrap_or(0), response.body_json().unwrap_or_default())
    }

    fn call_successfully(&mut self, api: &str, method: Method, target: &str, body: Option<&Value>) -> Value {
        let (status, response) = self.call(api, method.clone(), target, body);
        assert!(status < 300, "{method} {target}: {status} {response}");
        response
    }

    /// Creates an object in the namespace that it names.
    pub fn create(&mut self, api: &str, kind: ResourceKind, object: &Value) -> Value {
        self.call_successfully(
            api,
            Method::POST,
            &url_path(kind, text(object, "/metadata/namespace"), ""),
            Some(object),
        )
    }

    /// Returns an object, if it exists.
    pub fn get(&mut self, api: &str, kind: ResourceKind, namespace: &str, name: &str) -> Option<Value> {
        let namespace = (!namespace.is_empty()).then_some(namespace);
        self.api(api)
            .server
            .with(|machine| machine.get(kind.group, kind.plural, namespace, name).map(|object| Value::clone(object)))
    }

    /// Returns every object of a kind.
    pub fn list(&mut self, api: &str, kind: ResourceKind) -> Vec<Value> {
        self.api(api).server.with(|machine| {
            let of_kind = machine.objects().filter(|(key, _)| key.group == kind.group && key.plural == kind.plural);
            of_kind.map(|(_, object)| Value::clone(object)).collect()
        })
    }

    /// Reads an object, changes it and writes it back, atomically.
    pub fn edit(
        &mut self,
        api: &str,
        kind: ResourceKind,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) {
        let target = url_path(kind, namespace, name);
        let mut object = self.call_successfully(api, Method::GET, &target, None);
        change(&mut object);
        self.call_successfully(api, Method::PUT, &target, Some(&object));
    }

    /// Sets the status of an object.
    pub fn set_status(&mut self, api: &str, kind: ResourceKind, namespace: &str, name: &str, status: Value) {
        let target = url_path(kind, namespace, name);
        let mut object = self.call_successfully(api, Method::GET, &target, None);
        object["status"] = status;
        self.call_successfully(api, Method::PUT, &format!("{target}/status"), Some(&object));
    }

    /// Deletes an object; one with finalizers is only marked as being deleted.
    pub fn delete(&mut self, api: &str, kind: ResourceKind, namespace: &str, name: &str) {
        self.call_successfully(api, Method::DELETE, &url_path(kind, namespace, name), None);
    }

    /// Installs a CustomResourceDefinition and waits until its kind is served.
    pub fn install_crd(&mut self, api: &str, crd: &Value) {
        const CRD: ResourceKind = ResourceKind {
            group: "apiextensions.k8s.io",
            version: "v1",
            kind: "CustomResourceDefinition",
            plural: "customresourcedefinitions",
        };
        self.create(api, CRD, crd);
        self.advance(std::time::Duration::from_secs(1));
        assert!(self.get(api, CRD, "", name(crd)).is_some(), "the CRD exists");
    }
}
