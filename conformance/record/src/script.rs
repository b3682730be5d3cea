//! The language of exchanges: what is sent, what is awaited, what is watched.
//!
//! A file is one exchange: a few steps about one topic, in a namespace that has the exchange's name. What a step
//! expects is not written here: it is in the record.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use sindri_model::yaml::{self, YamlError};
use thiserror::Error;

use crate::protobuf::{Damage, MEDIA};

/// One exchange, before it took place.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its name: that of its file, of its record and of its namespace.
    pub name: String,
    /// One sentence.
    pub about: String,
    /// Whether the controllers of a cluster must run. Most exchanges are with the API server alone, where nobody
    /// else writes.
    pub controllers: bool,
    /// Whether it takes place before all others, because it speaks of the whole server: others make definitions.
    pub first: bool,
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// The whole file: what it names literally stays as it is in the record.
    pub text: String,
}

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// A few words.
    pub name: String,
    /// The step takes place once with each of these as `${each}`.
    pub each: Vec<String>,
    /// How long it waits before, where the passing of time is the topic.
    pub pause: Duration,
    /// What is done.
    pub action: Action,
    /// Words for later steps, each with the place in the answer where it is found, or the header.
    pub keep: BTreeMap<String, String>,
    /// The places in the answer that are recorded, if not everything is.
    pub only: Vec<String>,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// One request, one answer.
    Send(Ask),
    /// The same request until the answer is as it should be. Only the last answer is recorded.
    Until(Ask, BTreeMap<String, Value>),
    /// Opens a stream, which gets a name.
    Watch(String, Ask),
    /// Reads some events of a stream.
    Read(String, HowFar),
}

/// How far a stream is read. The server may end it before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HowFar {
    /// So many events.
    Events(usize),
    /// Up to the first event about an object with this name.
    Through(String),
    /// Until the server ends it.
    ToItsEnd,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers in addition to the usual ones; nothing takes a usual one away.
    pub headers: BTreeMap<String, Option<String>>,
    /// The body.
    pub body: Body,
}

/// What a request carries.
#[derive(Clone, Debug)]
pub enum Body {
    /// Nothing.
    Nothing,
    /// JSON.
    Json(Value),
    /// These very characters.
    Text(String),
    /// A message, and what is wrong with it.
    Protobuf(Value, Option<Damage>),
}

/// A script that cannot be played.
#[derive(Debug, Error)]
pub enum ScriptError {
    /// Not in the language.
    #[error("{name}: {error}")]
    Yaml {
        /// The script.
        name: String,
        /// What the parser says.
        error: YamlError,
    },
    /// Not in the language, and written by a program.
    #[error("{name}: {error}")]
    Json {
        /// The script.
        name: String,
        /// What the parser says.
        error: serde_json::Error,
    },
    /// In the language, but without sense.
    #[error("{name}, step {step:?}: {reason}")]
    Step {
        /// The script.
        name: String,
        /// The step.
        step: String,
        /// Why not.
        reason: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenScript {
    about: String,
    #[serde(default)]
    controllers: bool,
    #[serde(default)]
    first: bool,
    steps: Vec<WrittenStep>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStep {
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

/// The longest wait before a step.
const PAUSE_MILLISECONDS_MAX: u64 = 5_000;

/// What people write for the types of bodies.
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
    /// Reads a script.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScriptError> {
        let written = yaml::parse_into(text).map_err(|error| ScriptError::Yaml { name: name.to_owned(), error })?;
        Self::read(name, written, text)
    }

    /// Reads a script that a program wrote.
    pub fn from_json(name: &str, written: &Value) -> Result<Self, ScriptError> {
        let text = written.to_string();
        let written = serde_json::from_value(written.clone())
            .map_err(|error| ScriptError::Json { name: name.to_owned(), error })?;
        Self::read(name, written, &text)
    }

    fn read(name: &str, written: WrittenScript, text: &str) -> Result<Self, ScriptError> {
        let step = |step: WrittenStep| {
            let words = step.step.clone();
            read_step(step).map_err(|reason| ScriptError::Step { name: name.to_owned(), step: words, reason })
        };
        Ok(Self {
            name: name.to_owned(),
            about: written.about,
            controllers: written.controllers,
            first: written.first,
            steps: written.steps.into_iter().map(step).collect::<Result<_, _>>()?,
            text: text.to_owned(),
        })
    }
}

fn read_step(written: WrittenStep) -> Result<Step, &'static str> {
    let headers = headers(&written);
    let body = match (written.body, written.text, written.protobuf) {
        (None, None, None) => Body::Nothing,
        (Some(value), None, None) => Body::Json(value),
        (None, Some(text), None) => Body::Text(text),
        (None, None, Some(object)) => Body::Protobuf(object, written.damage),
        _ => return Err("it has a body twice"),
    };
    let ask = |line: &str| match line.split_once(' ') {
        Some((method, path)) if path.starts_with(['/', '$']) => {
            Ok(Ask { method: method.to_owned(), path: path.to_owned(), headers, body })
        }
        _ => Err("a request is a method and a path"),
    };
    let action = match (written.send, written.until, written.watch, written.read) {
        (Some(line), None, None, None) => Action::Send(ask(&line)?),
        (None, Some(line), None, None) => Action::Until(ask(&line)?, written.holds),
        (None, None, Some(line), None) => {
            let (stream, path) = line.split_once(' ').ok_or("a watch is a name and a path")?;
            Action::Watch(stream.to_owned(), ask(&format!("GET {path}"))?)
        }
        (None, None, None, Some(stream)) => match (written.events, written.through) {
            (Some(events), None) => Action::Read(stream, HowFar::Events(events)),
            (None, Some(name)) => Action::Read(stream, HowFar::Through(name)),
            (None, None) => Action::Read(stream, HowFar::ToItsEnd),
            (Some(_), Some(_)) => return Err("it says twice how far it reads"),
        },
        _ => return Err("it is one of send, until, watch and read"),
    };
    if written.pause_milliseconds > PAUSE_MILLISECONDS_MAX {
        return Err("it waits too long");
    }
    let pause = Duration::from_millis(written.pause_milliseconds);
    Ok(Step { name: written.step, each: written.each, pause, action, keep: written.keep, only: written.only })
}

fn headers(written: &WrittenStep) -> BTreeMap<String, Option<String>> {
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
    fn a_step_is_one_action_and_its_types_have_short_names() {
        let text = "about: x\nsteps:\n  - {step: a, send: PATCH /x, type: apply, accept: table, body: {a: 1}}\n";
        let script = Script::parse("one", text).unwrap();
        let Action::Send(ask) = &script.steps[0].action else { panic!("{script:?}") };
        assert_eq!((ask.method.as_str(), ask.path.as_str()), ("PATCH", "/x"));
        assert_eq!(ask.headers["Content-Type"].as_deref(), Some("application/apply-patch+yaml"));
        assert_eq!(ask.headers["Accept"].as_deref(), Some("application/json;as=Table;v=v1;g=meta.k8s.io"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_name_of_the_step() {
        for wrong in ["send: GET /x, read: w", "send: /x", "send: GET x", "watch: /x", "send: GET /x, body: 1, text: a"]
        {
            let error = Script::parse("one", &format!("about: x\nsteps: [{{step: a, {wrong}}}]\n")).unwrap_err();
            assert!(error.to_string().starts_with("one, step \"a\": "), "{error}");
        }
        assert!(matches!(Script::parse("one", "about: x\nstep: []\n"), Err(ScriptError::Yaml { .. })));
    }
}
