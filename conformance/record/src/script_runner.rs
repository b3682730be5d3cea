//! Runs a script with an API server and keeps every request with its response.
//!
//! The server is any [`Server`]: a remote one, or a simulated one with a clock of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderName, Request};
use serde_json::{Map, Value, json};
use sindri_cluster::webhook_server::WebhookServerError;
use thiserror::Error;

use crate::connection::ConnectionError;
use crate::normalise::is_collection;
use crate::pointer::find;
use crate::protobuf;
use crate::response::{FullResponse, recorded_headers};
use crate::script::{Action, Body, ReadLimit, RequestTemplate, Script, Step};
use crate::server::{Opened, Server};
use crate::target::Target;
use crate::template::{UnknownVariable, Variables, expand, expand_repetitions, expand_value};
use crate::webhook::Webhooks;

/// Timeout of a condition.
const SETTLE_MAX: Duration = Duration::from_secs(60);
/// Time between two checks of a condition.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// User agent. The server uses the name before the slash as the default field manager.
pub const USER_AGENT: &str = "recorder/1.0";
const JSON: &str = "application/json";
/// A request with this header is sent without the administrator's token.
const AUTHORIZATION: &str = "Authorization";
/// Pointer of the resourceVersion of an object or a list.
const VERSION: &str = "/metadata/resourceVersion";

/// Requests and responses of an exchange.
#[derive(Debug, Default)]
pub struct Transcript {
    /// Recorded steps.
    pub steps: Vec<Value>,
    /// All complete bodies of responses.
    pub bodies: Vec<Value>,
    /// resourceVersions of objects that later steps used.
    pub object_versions: BTreeSet<String>,
    /// resourceVersions of lists that later steps used.
    pub list_versions: BTreeSet<String>,
    /// Texts that are replaced by placeholders: the address and the certificate authority of webhooks.
    pub masked: Vec<(String, &'static str)>,
}

/// An exchange that failed.
#[derive(Debug, Error)]
#[error("{script}, step {step:?}: {reason}")]
pub struct ScriptRunError {
    /// Name of the script.
    pub script: String,
    /// Name of the step.
    pub step: String,
    /// Cause.
    pub reason: StepFailure,
}

/// Cause of a failed step.
#[derive(Debug, Error)]
pub enum StepFailure {
    /// No response.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// A variable without a value.
    #[error(transparent)]
    Variable(#[from] UnknownVariable),
    /// An invalid request.
    #[error("invalid request: {0}")]
    Request(#[from] http::Error),
    /// The response lacks a value for a variable.
    #[error("the response has no value at {0}")]
    Absent(String),
    /// A condition did not hold in time.
    #[error("the condition did not hold within {SETTLE_MAX:?}; the last response is {0}")]
    Timeout(String),
    /// The namespace of the script could not be created.
    #[error("the server answered {0}")]
    Rejected(String),
    /// The webhooks of the script could not start.
    #[error(transparent)]
    Webhooks(#[from] WebhookServerError),
    /// A stream that was not opened.
    #[error("there is no stream {0:?}")]
    NoStream(String),
}

/// Reaction to a failed step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// Ends the exchange.
    Abort,
    /// Records the failure and continues, because the server is being tested.
    Record,
}

/// Runs a script in a new namespace of its own.
pub async fn run_script<S: Server>(
    script: &Script,
    target: &Target,
    server: S,
    on_failure: OnFailure,
) -> Result<Transcript, ScriptRunError> {
    let mut runner = ScriptRunner::new(script, target, server, on_failure);
    let failed = |step: &str| {
        let (script, step) = (script.name.clone(), step.to_owned());
        move |reason| ScriptRunError { script, step, reason }
    };
    runner.prepare(script).await.map_err(failed("its namespace"))?;
    for step in &script.steps {
        runner.run_step(step).await.map_err(failed(&step.name))?;
    }
    Ok(runner.transcript)
}

struct ScriptRunner<'a, S: Server> {
    target: &'a Target,
    server: S,
    on_failure: OnFailure,
    variables: Variables,
    streams: BTreeMap<String, S::Stream>,
    webhooks: Webhooks,
    transcript: Transcript,
}

impl<'a, S: Server> ScriptRunner<'a, S> {
    fn new(script: &Script, target: &'a Target, server: S, on_failure: OnFailure) -> Self {
        let name = &script.name;
        let variables = [
            ("namespace", name.clone()),
            ("core", format!("/api/v1/namespaces/{name}")),
            ("apps", format!("/apis/apps/v1/namespaces/{name}")),
            ("batch", format!("/apis/batch/v1/namespaces/{name}")),
        ];
        Self {
            target,
            server,
            on_failure,
            variables: variables.map(|(name, value)| (name.to_owned(), value)).into(),
            streams: BTreeMap::new(),
            webhooks: Webhooks::new(script.webhooks.clone()),
            transcript: Transcript::default(),
        }
    }

    /// Creates the namespace, with the service account that pods need. With controllers, waits until they have created it.
    async fn prepare(&mut self, script: &Script) -> Result<(), StepFailure> {
        if !self.webhooks.is_empty() {
            let address = self.server.serve_webhooks(self.webhooks.clone()).await?;
            let bundle = STANDARD.encode(&address.certificate);
            self.variables.insert("webhook".to_owned(), format!("https://{}", address.authority));
            self.variables.insert("webhookAuthority".to_owned(), bundle.clone());
            self.transcript.masked = vec![(address.authority, "<webhook>"), (bundle, "<authority>")];
        }
        let named = |kind, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
        let post = |path: &str, body| RequestTemplate {
            method: "POST".to_owned(),
            path: path.to_owned(),
            headers: BTreeMap::new(),
            body: Body::Json(body),
        };
        let mut requests = vec![post("/api/v1/namespaces", named("Namespace", &script.name))];
        if !script.controllers {
            requests.push(post("${core}/serviceaccounts", named("ServiceAccount", "default")));
        }
        for request in requests {
            let response = self.send(&self.expand(&request)?).await?;
            if !response.is_success() {
                return Err(StepFailure::Rejected(describe(&response)));
            }
        }
        if script.controllers {
            for path in ["${core}/serviceaccounts/default", "${core}/configmaps/kube-root-ca.crt"] {
                let mut request = post(path, Value::Null);
                (request.method, request.body) = ("GET".to_owned(), Body::Nothing);
                self.send_until(&self.expand(&request)?, &BTreeMap::from([("status".to_owned(), json!(200))])).await?;
            }
        }
        Ok(())
    }

    async fn run_step(&mut self, step: &Step) -> Result<(), StepFailure> {
        self.server.advance(step.pause).await;
        if step.each.is_empty() {
            return self.run_once(step, step.name.clone()).await;
        }
        for each in &step.each {
            self.variables.insert("each".to_owned(), each.clone());
            self.run_once(step, format!("{} ({each})", step.name)).await?;
        }
        Ok(())
    }

    async fn run_once(&mut self, step: &Step, name: String) -> Result<(), StepFailure> {
        let mut recorded = match self.act(step).await {
            Err(reason) if self.on_failure == OnFailure::Record => json!({"impossible": reason.to_string()}),
            done => done?,
        };
        recorded["about"] = json!(name);
        self.transcript.steps.push(recorded);
        Ok(())
    }

    async fn act(&mut self, step: &Step) -> Result<Value, StepFailure> {
        Ok(match &step.action {
            Action::Send(request) => {
                let request = self.expand(request)?;
                let response = match self.send(&request).await {
                    Err(StepFailure::Connection(error)) if error.is_cut() => json!({"cut": true}),
                    response => self.record(step, &response?)?,
                };
                let mut recorded = json!({"request": request.to_recorded(), "response": response});
                if !self.webhooks.is_empty() {
                    recorded["reviews"] = self.webhooks.take_reviews().into();
                }
                recorded
            }
            Action::Until(request, conditions) => {
                let request = self.expand(request)?;
                let response = self.send_until(&request, conditions).await?;
                self.webhooks.take_reviews();
                let response = self.record(step, &response)?;
                json!({"request": request.to_recorded(), "until": conditions, "response": response})
            }
            Action::Watch(stream, request) => self.watch(stream, &self.expand(request)?).await?,
            Action::Read(stream, limit) => self.read(step, stream, limit).await?,
        })
    }

    fn record(&mut self, step: &Step, response: &FullResponse) -> Result<Value, StepFailure> {
        let body = response.json();
        self.set_variables(step, &body, &recorded_headers(&response.headers))?;
        let mut recorded = response.to_recorded();
        if !step.only.is_empty() {
            let bytes = recorded["body"].get("bytes").cloned();
            recorded["body"] = select(&body, &step.only);
            if let Some(bytes) = bytes {
                recorded["body"]["bytes"] = bytes;
            }
        }
        self.transcript.bodies.push(body);
        Ok(recorded)
    }

    fn set_variables(&mut self, step: &Step, body: &Value, headers: &BTreeMap<&str, Value>) -> Result<(), StepFailure> {
        for (name, pointer) in &step.keep {
            let found = if pointer.starts_with('/') { find(body, pointer) } else { headers.get(pointer.as_str()) };
            let value = match found {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                // Steps that use the variable fail; the response itself is recorded nevertheless.
                None if self.on_failure == OnFailure::Record => continue,
                None => return Err(StepFailure::Absent(pointer.clone())),
            };
            let holder = pointer.strip_suffix(VERSION).and_then(|holder| find(body, holder));
            if holder.is_some_and(is_collection) || is_bookmark(body, pointer) {
                self.transcript.list_versions.insert(value.clone());
            } else if holder.is_some() {
                self.transcript.object_versions.insert(value.clone());
            }
            self.variables.insert(name.clone(), value);
        }
        Ok(())
    }

    async fn watch(&mut self, stream: &str, request: &ExpandedRequest) -> Result<Value, StepFailure> {
        match self.server.open(request.to_http(self.target)?).await? {
            Opened::Rejected(response) => {
                Ok(json!({"request": request.to_recorded(), "response": response.to_recorded()}))
            }
            Opened::Stream { status, headers, stream: lines } => {
                let head = json!({"status": status.as_u16(), "headers": recorded_headers(&headers)});
                self.streams.insert(stream.to_owned(), lines);
                Ok(json!({"request": request.to_recorded(), "watch": stream, "response": head}))
            }
        }
    }

    async fn read(&mut self, step: &Step, name: &str, limit: &ReadLimit) -> Result<Value, StepFailure> {
        let last = match limit {
            ReadLimit::Through(last) => Some(expand(last, &self.variables)?),
            ReadLimit::Events(_) | ReadLimit::End => None,
        };
        let stream = self.streams.get_mut(name).ok_or_else(|| StepFailure::NoStream(name.to_owned()))?;
        let (mut events, mut ended) = (Vec::<Value>::new(), false);
        let is_enough = |events: &[Value]| match (limit, &last) {
            (ReadLimit::Events(count), _) => events.len() >= *count,
            (ReadLimit::Through(_), Some(last)) => events.last().is_some_and(|event| is_about(event, last)),
            (ReadLimit::Through(_) | ReadLimit::End, _) => false,
        };
        while !is_enough(&events) {
            match self.server.next(stream).await? {
                Some(line) => events.push(decode_event(&line)),
                None => {
                    ended = true;
                    break;
                }
            }
        }
        let body = json!({ "events": events });
        self.set_variables(step, &body, &BTreeMap::new())?;
        self.transcript.bodies.push(body);
        let recorded =
            events.iter().map(|event| if step.only.is_empty() { event.clone() } else { select(event, &step.only) });
        Ok(json!({"watch": name, "events": recorded.collect::<Vec<_>>(), "ended": ended}))
    }

    async fn send_until(
        &mut self,
        request: &ExpandedRequest,
        conditions: &BTreeMap<String, Value>,
    ) -> Result<FullResponse, StepFailure> {
        let mut waited = Duration::ZERO;
        loop {
            let response = self.send(request).await?;
            if meets(&response, conditions) {
                return Ok(response);
            }
            if waited >= SETTLE_MAX {
                return Err(StepFailure::Timeout(describe(&response)));
            }
            self.server.advance(CHECK_INTERVAL).await;
            waited += CHECK_INTERVAL;
        }
    }

    async fn send(&mut self, request: &ExpandedRequest) -> Result<FullResponse, StepFailure> {
        Ok(self.server.send(request.to_http(self.target)?).await?)
    }

    fn expand(&self, request: &RequestTemplate) -> Result<ExpandedRequest, StepFailure> {
        let mut headers = BTreeMap::from([
            ("Accept".to_owned(), Some(JSON.to_owned())),
            ("User-Agent".to_owned(), Some(USER_AGENT.to_owned())),
        ]);
        let body = match &request.body {
            Body::Nothing => Body::Nothing,
            Body::Json(value) => Body::Json(expand_value(value, &self.variables)?),
            Body::Text(text) => Body::Text(expand(text, &self.variables)?),
            Body::Protobuf(object, damage) => Body::Protobuf(expand_value(object, &self.variables)?, *damage),
        };
        if !matches!(body, Body::Nothing) {
            headers.insert("Content-Type".to_owned(), Some(JSON.to_owned()));
        }
        for (name, value) in &request.headers {
            let value = value.as_ref().map(|value| expand(value, &self.variables)).transpose()?;
            headers.insert(name.clone(), value);
        }
        let (method, path) = (expand(&request.method, &self.variables)?, expand(&request.path, &self.variables)?);
        Ok(ExpandedRequest { method, path, headers, body })
    }
}

/// A request with all variables replaced, and all headers.
struct ExpandedRequest {
    method: String,
    path: String,
    headers: BTreeMap<String, Option<String>>,
    body: Body,
}

impl ExpandedRequest {
    fn to_http(&self, target: &Target) -> Result<Request<Bytes>, StepFailure> {
        let path = expand_repetitions(&self.path)?;
        let mut request = if self.headers.contains_key(AUTHORIZATION) {
            target.request(&self.method, &path)
        } else {
            target.administrator_request(&self.method, &path)
        };
        for (name, value) in &self.headers {
            if let Some(value) = value {
                request = request.header(HeaderName::try_from(name).map_err(http::Error::from)?, value);
            }
        }
        let body = match &self.body {
            Body::Nothing => Bytes::new(),
            Body::Json(value) => expand_repetitions(&value.to_string())?.into(),
            Body::Text(text) => expand_repetitions(text)?.into(),
            Body::Protobuf(object, damage) => protobuf::encode_damaged(object, *damage),
        };
        Ok(request.body(body)?)
    }

    fn to_recorded(&self) -> Value {
        let mut recorded = json!({"method": self.method, "path": self.path, "headers": self.headers});
        match &self.body {
            Body::Nothing => {}
            Body::Json(value) => recorded["body"] = value.clone(),
            Body::Text(text) => recorded["text"] = json!(text),
            Body::Protobuf(object, damage) => {
                recorded["protobuf"] = object.clone();
                if let Some(damage) = damage {
                    recorded["damage"] = json!(format!("{damage:?}"));
                }
            }
        }
        recorded
    }
}

/// Decodes an event of a stream: a line of JSON, or a protobuf message with its length.
fn decode_event(bytes: &[u8]) -> Value {
    if bytes.starts_with(b"{") {
        return serde_json::from_slice(bytes).unwrap_or_default();
    }
    protobuf::record_event(bytes)
}

/// Describes a response by its status and message, without the content of an object.
fn describe(response: &FullResponse) -> String {
    format!("{} {}", response.status, response.json()["message"].as_str().unwrap_or_default())
}

/// Returns some fields of a value by their pointers, and its kind.
fn select(value: &Value, pointers: &[String]) -> Value {
    let kind = value.get("kind").map(|kind| ("kind".to_owned(), kind.clone()));
    let fields = pointers.iter().map(|pointer| (pointer.clone(), find(value, pointer).cloned().unwrap_or_default()));
    Value::Object(kind.into_iter().chain(fields).collect::<Map<_, _>>())
}

/// Returns true if a response meets the conditions. `status` is that of HTTP; null means that the field is absent.
fn meets(response: &FullResponse, conditions: &BTreeMap<String, Value>) -> bool {
    let body = response.json();
    conditions.iter().all(|(pointer, expected)| match pointer.as_str() {
        "status" => *expected == response.status.as_u16(),
        pointer => find(&body, pointer).unwrap_or(&Value::Null) == expected,
    })
}

/// Returns true if an event is about an object with this name.
fn is_about(event: &Value, name: &str) -> bool {
    event.pointer("/object/metadata/name").is_some_and(|found| found == name)
}

fn is_bookmark(body: &Value, pointer: &str) -> bool {
    let event = pointer.split("/object/").next().and_then(|event| find(body, event));
    event.and_then(|event| event.get("type")).is_some_and(|kind| kind == "BOOKMARK")
}
