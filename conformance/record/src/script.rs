//! The language of exchanges: requests, conditions to wait for, and watches.
//!
//! A file is one exchange: a few steps about one topic, in a namespace with the exchange's name. The expected responses are not
//! here, but in the recording.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use sindri_model::yaml::{self, YamlError};
use thiserror::Error;

use crate::protobuf::{Damage, MEDIA};
use crate::webhook::ScriptedReply;

/// Script of one exchange.
#[derive(Clone, Debug)]
pub struct Script {
    /// Name of the exchange, its file, its recording and its namespace.
    pub name: String,
    /// Description in one sentence. It is part of the recording.
    pub about: String,
    /// True if the controllers of a cluster must run. Most exchanges are with the API server alone, without other writers.
    pub controllers: bool,
    /// True if it runs before all others, because it is about the whole server: others create CRDs.
    pub first: bool,
    /// Replies of the webhooks that the server calls at `${webhook}`, by path. Their certificate authority is
    /// `${webhookAuthority}`.
    pub webhooks: BTreeMap<String, ScriptedReply>,
    /// Steps, in order.
    pub steps: Vec<Step>,
    /// Text of the file: values that it contains literally are kept in the recording.
    pub text: String,
}

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// Short description. It is part of the recording.
    pub name: String,
    /// The step runs once with each of these as `${each}`.
    pub each: Vec<String>,
    /// Pause before the step, if the exchange is about time.
    pub pause: Duration,
    /// Action.
    pub action: Action,
    /// Variables for later steps, each with the pointer of its value in the response, or the header.
    pub keep: BTreeMap<String, String>,
    /// Pointers of the recorded fields of the response; empty: everything.
    pub only: Vec<String>,
}

/// Action of a step.
#[derive(Clone, Debug)]
pub enum Action {
    /// Sends one request.
    Send(RequestTemplate),
    /// Repeats a request until the response meets the conditions. Only the last response is recorded.
    Until(RequestTemplate, BTreeMap<String, Value>),
    /// Opens a stream with a name.
    Watch(String, RequestTemplate),
    /// Reads events of a stream.
    Read(String, ReadLimit),
}

/// Limit of reading a stream. The server may end it before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadLimit {
    /// Number of events.
    Events(usize),
    /// Up to the first event of an object with this name.
    Through(String),
    /// Until the server ends the stream.
    End,
}

/// One request, with variables.
#[derive(Clone, Debug)]
pub struct RequestTemplate {
    /// Method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers in addition to the default ones; `None` removes a default one.
    pub headers: BTreeMap<String, Option<String>>,
    /// Body.
    pub body: Body,
}

/// Body of a request.
#[derive(Clone, Debug)]
pub enum Body {
    /// No body.
    Nothing,
    /// JSON.
    Json(Value),
    /// Literal text.
    Text(String),
    /// A protobuf message, and its damage.
    Protobuf(Value, Option<Damage>),
}

/// An invalid script.
#[derive(Debug, Error)]
pub enum ScriptError {
    /// Invalid YAML.
    #[error("{name}: {error}")]
    Yaml {
        /// Name of the script.
        name: String,
        /// Error of the parser.
        error: YamlError,
    },
    /// Invalid JSON of a generated script.
    #[error("{name}: {error}")]
    Json {
        /// Name of the script.
        name: String,
        /// Error of the parser.
        error: serde_json::Error,
    },
    /// An invalid step.
    #[error("{name}, step {step:?}: {reason}")]
    Step {
        /// Name of the script.
        name: String,
        /// Name of the step.
        step: String,
        /// Cause.
        reason: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    about: String,
    #[serde(default)]
    controllers: bool,
    #[serde(default)]
    first: bool,
    #[serde(default)]
    webhooks: BTreeMap<String, ScriptedReply>,
    steps: Vec<StepFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepFile {
    step: String,
    #[serde(default)]
    each: Vec<String>,
    #[serde(default)]
    pause_milliseconds: u64,
    send: Option<String>,
    until: Option<String>,
    #[serde(default)]
    holds: BTreeMap<String, Value>,
    watch: Option<String>,
    read: Option<String>,
    events: Option<usize>,
    through: Option<String>,
    #[serde(rename = "type")]
    content_type: Option<String>,
    accept: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, Option<String>>,
    body: Option<Value>,
    text: Option<String>,
    protobuf: Option<Value>,
    damage: Option<Damage>,
    #[serde(default)]
    keep: BTreeMap<String, String>,
    #[serde(default)]
    only: Vec<String>,
}

/// Maximum pause before a step.
const PAUSE_MILLISECONDS_MAX: u64 = 5_000;

/// Short names of content types.
const CONTENT_TYPES: [(&str, &str); 8] = [
    ("json", "application/json"),
    ("yaml", "application/yaml"),
    ("apply", "application/apply-patch+yaml"),
    ("merge", "application/merge-patch+json"),
    ("strategic", "application/strategic-merge-patch+json"),
    ("json-patch", "application/json-patch+json"),
    ("table", "application/json;as=Table;v=v1;g=meta.k8s.io"),
    ("protobuf", MEDIA),
];

impl Script {
    /// Parses a script.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScriptError> {
        let written = yaml::parse_into(text).map_err(|error| ScriptError::Yaml { name: name.to_owned(), error })?;
        Self::from_file(name, written, text)
    }

    /// Converts a generated script.
    pub fn from_json(name: &str, written: &Value) -> Result<Self, ScriptError> {
        let text = written.to_string();
        let written = serde_json::from_value(written.clone())
            .map_err(|error| ScriptError::Json { name: name.to_owned(), error })?;
        Self::from_file(name, written, &text)
    }

    fn from_file(name: &str, written: ScriptFile, text: &str) -> Result<Self, ScriptError> {
        let step = |step: StepFile| {
            let step_name = step.step.clone();
            read_step(step).map_err(|reason| ScriptError::Step { name: name.to_owned(), step: step_name, reason })
        };
        Ok(Self {
            name: name.to_owned(),
            about: written.about,
            controllers: written.controllers,
            first: written.first,
            webhooks: written.webhooks,
            steps: written.steps.into_iter().map(step).collect::<Result<_, _>>()?,
            text: text.to_owned(),
        })
    }
}

fn read_step(written: StepFile) -> Result<Step, &'static str> {
    let headers = headers(&written);
    let body = match (written.body, written.text, written.protobuf) {
        (None, None, None) => Body::Nothing,
        (Some(value), None, None) => Body::Json(value),
        (None, Some(text), None) => Body::Text(text),
        (None, None, Some(object)) => Body::Protobuf(object, written.damage),
        _ => return Err("it has more than one body"),
    };
    let request = |line: &str| match line.split_once(' ') {
        Some((method, path)) if path.starts_with(['/', '$']) => {
            Ok(RequestTemplate { method: method.to_owned(), path: path.to_owned(), headers, body })
        }
        _ => Err("a request is a method and a path"),
    };
    let action = match (written.send, written.until, written.watch, written.read) {
        (Some(line), None, None, None) => Action::Send(request(&line)?),
        (None, Some(line), None, None) => Action::Until(request(&line)?, written.holds),
        (None, None, Some(line), None) => {
            let (stream, path) = line.split_once(' ').ok_or("a watch is a name and a path")?;
            Action::Watch(stream.to_owned(), request(&format!("GET {path}"))?)
        }
        (None, None, None, Some(stream)) => match (written.events, written.through) {
            (Some(events), None) => Action::Read(stream, ReadLimit::Events(events)),
            (None, Some(name)) => Action::Read(stream, ReadLimit::Through(name)),
            (None, None) => Action::Read(stream, ReadLimit::End),
            (Some(_), Some(_)) => return Err("it has more than one limit"),
        },
        _ => return Err("it is one of send, until, watch and read"),
    };
    if written.pause_milliseconds > PAUSE_MILLISECONDS_MAX {
        return Err("the pause is too long");
    }
    let pause = Duration::from_millis(written.pause_milliseconds);
    Ok(Step { name: written.step, each: written.each, pause, action, keep: written.keep, only: written.only })
}

fn headers(written: &StepFile) -> BTreeMap<String, Option<String>> {
    let mut headers = written.headers.clone();
    let long = |short: &String| {
        let known = CONTENT_TYPES.iter().find(|(name, _)| name == short);
        Some(known.map_or_else(|| short.clone(), |(_, long)| (*long).to_owned()))
    };
    if written.protobuf.is_some() {
        headers.insert("Content-Type".to_owned(), Some(MEDIA.to_owned()));
    }
    if let Some(content_type) = &written.content_type {
        headers.insert("Content-Type".to_owned(), long(content_type));
    }
    if let Some(accept) = &written.accept {
        headers.insert("Accept".to_owned(), long(accept));
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_one_action_and_content_types_have_short_names() {
        let text = "about: x\nsteps:\n  - {step: a, send: PATCH /x, type: apply, accept: table, body: {a: 1}}\n";
        let script = Script::parse("one", text).unwrap();
        let Action::Send(request) = &script.steps[0].action else { panic!("{script:?}") };
        assert_eq!((request.method.as_str(), request.path.as_str()), ("PATCH", "/x"));
        assert_eq!(request.headers["Content-Type"].as_deref(), Some("application/apply-patch+yaml"));
        assert_eq!(request.headers["Accept"].as_deref(), Some("application/json;as=Table;v=v1;g=meta.k8s.io"));
    }

    #[test]
    fn an_invalid_step_is_rejected_with_its_name() {
        for wrong in ["send: GET /x, read: w", "send: /x", "send: GET x", "watch: /x", "send: GET /x, body: 1, text: a"]
        {
            let error = Script::parse("one", &format!("about: x\nsteps: [{{step: a, {wrong}}}]\n")).unwrap_err();
            assert!(error.to_string().starts_with("one, step \"a\": "), "{error}");
        }
        assert!(matches!(Script::parse("one", "about: x\nstep: []\n"), Err(ScriptError::Yaml { .. })));
    }
}
