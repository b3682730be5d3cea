//! An API server whose clock the test moves.

use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sindri_apiserver::{ApiServer, Request, Response, WatchId, Write};

pub const APPLY: &str = "application/apply-patch+yaml";
pub const MERGE: &str = "application/merge-patch+json";
pub const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// One API server and its current time.
pub struct Machine {
    pub server: ApiServer,
    pub now: Timestamp,
}

/// Status code and parsed body of a response.
#[derive(Clone, Debug, PartialEq)]
pub struct TestResponse {
    pub status: u16,
    pub body: Value,
}

impl TestResponse {
    pub fn resource_version(&self) -> &str {
        self.body["metadata"]["resourceVersion"].as_str().expect("an object")
    }

    pub fn uid(&self) -> &str {
        self.body["metadata"]["uid"].as_str().expect("an object")
    }

    /// Returns the status code, reason and message of a failure.
    pub fn failure(&self) -> (u16, &str, &str) {
        let text = |name: &str| self.body[name].as_str().unwrap_or_default();
        (self.status, text("reason"), text("message"))
    }
}

impl Machine {
    /// Returns a server that has finished its start-up work, with an empty journal.
    pub fn new() -> Self {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a valid time");
        let mut machine = Self { server: ApiServer::new(7, now), now };
        machine.advance(10_000);
        machine.server.take_journal();
        machine
    }

    /// Advances the time and ticks the control plane at each time at which it has work.
    pub fn advance(&mut self, milliseconds: i64) {
        let end = self.now + SignedDuration::from_millis(milliseconds);
        while let Some(next) = self.server.next_tick().filter(|next| *next <= end) {
            self.now = next.max(self.now);
            self.server.tick(self.now);
        }
        self.now = end;
        self.server.tick(end);
    }

    pub fn request(&self, method: Method, target: &str, content_type: &str, body: &Value) -> Request {
        let mut request = Request::new(method, target).expect("a valid target");
        if !body.is_null() {
            request = request.with_body(content_type, body.to_string());
        }
        request.headers.user_agent = "tester/1.0".to_owned();
        request
    }

    pub fn send(&mut self, request: &Request) -> TestResponse {
        match self.server.handle(self.now, request, None) {
            Response::Full { status, body, .. } => {
                let text = String::from_utf8_lossy(&body).into_owned();
                TestResponse { status, body: serde_json::from_slice(&body).unwrap_or(Value::String(text)) }
            }
            other => panic!("expected a complete response, got {other:?}"),
        }
    }

    fn call(&mut self, method: Method, target: &str, content_type: &str, body: &Value) -> TestResponse {
        let request = self.request(method, target, content_type, body);
        self.send(&request)
    }

    pub fn get(&mut self, target: &str) -> TestResponse {
        self.call(Method::GET, target, "", &Value::Null)
    }

    pub fn post(&mut self, target: &str, body: &Value) -> TestResponse {
        self.call(Method::POST, target, "application/json", body)
    }

    pub fn put(&mut self, target: &str, body: &Value) -> TestResponse {
        self.call(Method::PUT, target, "application/json", body)
    }

    pub fn patch(&mut self, target: &str, content_type: &str, body: &Value) -> TestResponse {
        self.call(Method::PATCH, target, content_type, body)
    }

    /// Server-side apply by the manager `tester`.
    pub fn apply(&mut self, target: &str, body: &Value) -> TestResponse {
        self.patch(&format!("{target}?fieldManager=tester"), APPLY, body)
    }

    pub fn delete(&mut self, target: &str) -> TestResponse {
        self.call(Method::DELETE, target, "", &Value::Null)
    }

    pub fn delete_with(&mut self, target: &str, options: &Value) -> TestResponse {
        self.call(Method::DELETE, target, "application/json", options)
    }

    pub fn watch(&mut self, target: &str) -> WatchId {
        let request = self.request(Method::GET, target, "", &Value::Null);
        match self.server.handle(self.now, &request, None) {
            Response::Watch(id) => id,
            other => panic!("expected a watch, got {other:?}"),
        }
    }

    /// Returns the events of a watch as `TYPE name`.
    pub fn events(&mut self, id: WatchId) -> Vec<String> {
        let lines = self.server.watch_events(id, self.now);
        let events = lines.iter().map(|line| serde_json::from_slice::<Value>(line).expect("a JSON line"));
        events
            .map(|event| {
                let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                format!("{} {name}", event["type"].as_str().unwrap_or_default()).trim_end().to_owned()
            })
            .collect()
    }

    /// Returns the journal as `verb plural/name`, prefixed with `-` if the write removed the object.
    pub fn journal(&mut self) -> Vec<String> {
        let line = |write: Write| {
            let removed = if write.after.is_none() { "-" } else { "" };
            format!("{removed}{:?} {}/{}", write.verb, write.key.plural, write.key.name)
        };
        self.server.take_journal().into_iter().map(line).collect()
    }

    /// Creates the Gadget CRD and waits until it is served.
    pub fn create_gadget_crd(&mut self) {
        let created = self.post(CRDS, &gadget_crd());
        assert_eq!(created.status, 201, "{}", created.body);
        self.advance(1_000);
        self.server.take_journal();
    }
}

pub const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub const GADGETS: &str = "/apis/example.io/v1/namespaces/default/gadgets";

pub fn config_map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

pub fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1", "ports": [{"containerPort": 80}]}]},
            },
        },
    })
}

pub fn gadget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "example.io/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": spec})
}

pub fn gadget_crd() -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1},
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        }},
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
    }}});
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": schema, "subresources": {"status": {}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.io"},
        "spec": {
            "group": "example.io", "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [version("v1beta1", false), version("v1", true)],
        },
    })
}
