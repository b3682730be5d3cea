//! Plays a script against an API server and keeps every request with its answer.
//!
//! Who answers is a [`Server`]: a real one behind connections, or one that is compared with it and has a clock of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, Request};
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::answer::{Answer, kept};
use crate::connection::ConnectionError;
use crate::normalise::is_collection;
use crate::pointer::find;
use crate::protobuf;
use crate::script::{Action, Ask, Body, HowFar, Script, Step};
use crate::server::{Opened, Server};
use crate::target::Target;
use crate::template::{UnknownWord, Words, enlarge, expand, expand_value};

/// How long a condition may take to hold.
const SETTLE_MAX: Duration = Duration::from_secs(60);
/// How often a condition is looked at.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Who asks: the server takes the name before the slash for the manager of fields.
pub const USER_AGENT: &str = "recorder/1.0";
const JSON: &str = "application/json";
/// A request that names this header is not the administrator's.
const AUTHORIZATION: &str = "Authorization";
/// The place of an object's or a list's version.
const VERSION: &str = "/metadata/resourceVersion";

/// An exchange as it took place.
#[derive(Debug, Default)]
pub struct Played {
    /// Every step.
    pub steps: Vec<Value>,
    /// Every body of an answer, whole.
    pub bodies: Vec<Value>,
    /// Versions of objects that later steps used.
    pub object_versions: BTreeSet<String>,
    /// Versions of whole lists that later steps used.
    pub list_versions: BTreeSet<String>,
}

/// An exchange that did not take place.
#[derive(Debug, Error)]
#[error("{script}, step {step:?}: {reason}")]
pub struct PlayError {
    /// The script.
    pub script: String,
    /// The step.
    pub step: String,
    /// Why not.
    pub reason: Reason,
}

/// Why a step could not take place.
#[derive(Debug, Error)]
pub enum Reason {
    /// No answer.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// A word that nothing gave a meaning.
    #[error(transparent)]
    Word(#[from] UnknownWord),
    /// A request that HTTP does not know.
    #[error("not a request: {0}")]
    Request(#[from] http::Error),
    /// Nothing to keep.
    #[error("the answer has nothing at {0}")]
    Absent(String),
    /// The condition did not come to hold.
    #[error("not so within {SETTLE_MAX:?}; the last answer is {0}")]
    Unsettled(String),
    /// The namespace of the script could not be made.
    #[error("the answer is {0}")]
    Refused(String),
    /// A stream that was not opened.
    #[error("there is no stream {0:?}")]
    NoStream(String),
}

/// What becomes of a step that cannot take place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impossible {
    /// The exchange ends.
    Fails,
    /// It is written down, and the exchange goes on: the server is the one that is in question.
    IsRecorded,
}

/// Plays a script, in a namespace of its own that is made first.
pub async fn play<S: Server>(
    script: &Script,
    target: &Target,
    server: S,
    impossible: Impossible,
) -> Result<Played, PlayError> {
    let mut player = Player::new(script, target, server, impossible);
    let failed = |step: &str| {
        let (script, step) = (script.name.clone(), step.to_owned());
        move |reason| PlayError { script, step, reason }
    };
    player.prepare(script).await.map_err(failed("its namespace"))?;
    for step in &script.steps {
        player.step(step).await.map_err(failed(&step.name))?;
    }
    Ok(player.played)
}

struct Player<'a, S: Server> {
    target: &'a Target,
    server: S,
    impossible: Impossible,
    words: Words,
    streams: BTreeMap<String, S::Stream>,
    played: Played,
}

impl<'a, S: Server> Player<'a, S> {
    fn new(script: &Script, target: &'a Target, server: S, impossible: Impossible) -> Self {
        let name = &script.name;
        let words = [
            ("namespace", name.clone()),
            ("core", format!("/api/v1/namespaces/{name}")),
            ("apps", format!("/apis/apps/v1/namespaces/{name}")),
            ("batch", format!("/apis/batch/v1/namespaces/{name}")),
        ];
        Self {
            target,
            server,
            impossible,
            words: words.map(|(word, meaning)| (word.to_owned(), meaning)).into(),
            streams: BTreeMap::new(),
            played: Played::default(),
        }
    }

    /// The namespace, with the service account that pods need. Where controllers run, they make it.
    async fn prepare(&mut self, script: &Script) -> Result<(), Reason> {
        let named = |kind, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
        let make = |path: &str, body| Ask {
            method: "POST".to_owned(),
            path: path.to_owned(),
            headers: BTreeMap::new(),
            body: Body::Json(body),
        };
        let mut asks = vec![make("/api/v1/namespaces", named("Namespace", &script.name))];
        if !script.controllers {
            asks.push(make("${core}/serviceaccounts", named("ServiceAccount", "default")));
        }
        for ask in asks {
            let answer = self.ask(&self.written(&ask)?).await?;
            if !answer.is_success() {
                return Err(Reason::Refused(told(&answer)));
            }
        }
        if script.controllers {
            for path in ["${core}/serviceaccounts/default", "${core}/configmaps/kube-root-ca.crt"] {
                let mut ask = make(path, Value::Null);
                (ask.method, ask.body) = ("GET".to_owned(), Body::Nothing);
                self.settled(&self.written(&ask)?, &BTreeMap::from([("status".to_owned(), json!(200))])).await?;
            }
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<(), Reason> {
        self.server.pass(step.pause).await;
        if step.each.is_empty() {
            return self.once(step, step.name.clone()).await;
        }
        for each in &step.each {
            self.words.insert("each".to_owned(), each.clone());
            self.once(step, format!("{} ({each})", step.name)).await?;
        }
        Ok(())
    }

    async fn once(&mut self, step: &Step, name: String) -> Result<(), Reason> {
        let mut recorded = match self.act(step).await {
            Err(reason) if self.impossible == Impossible::IsRecorded => json!({"impossible": reason.to_string()}),
            done => done?,
        };
        recorded["about"] = json!(name);
        self.played.steps.push(recorded);
        Ok(())
    }

    async fn act(&mut self, step: &Step) -> Result<Value, Reason> {
        Ok(match &step.action {
            Action::Send(ask) => {
                let ask = self.written(ask)?;
                let response = match self.ask(&ask).await {
                    Err(Reason::Connection(error)) if error.is_cut() => json!({"cut": true}),
                    answer => self.noted(step, &answer?)?,
                };
                json!({"request": ask.recorded(), "response": response})
            }
            Action::Until(ask, holds) => {
                let ask = self.written(ask)?;
                let answer = self.settled(&ask, holds).await?;
                json!({"request": ask.recorded(), "until": holds, "response": self.noted(step, &answer)?})
            }
            Action::Watch(stream, ask) => self.watch(stream, &self.written(ask)?).await?,
            Action::Read(stream, how_far) => self.read(step, stream, how_far).await?,
        })
    }

    fn noted(&mut self, step: &Step, answer: &Answer) -> Result<Value, Reason> {
        let body = answer.json();
        self.keep(step, &body, &kept(&answer.headers))?;
        let mut recorded = answer.recorded();
        if !step.only.is_empty() {
            let bytes = recorded["body"].get("bytes").cloned();
            recorded["body"] = chosen(&body, &step.only);
            if let Some(bytes) = bytes {
                recorded["body"]["bytes"] = bytes;
            }
        }
        self.played.bodies.push(body);
        Ok(recorded)
    }

    fn keep(&mut self, step: &Step, body: &Value, headers: &BTreeMap<&str, Value>) -> Result<(), Reason> {
        for (word, pointer) in &step.keep {
            let found = if pointer.starts_with('/') { find(body, pointer) } else { headers.get(pointer.as_str()) };
            let meaning = match found {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                // What needs the word cannot take place; the answer itself is recorded all the same.
                None if self.impossible == Impossible::IsRecorded => continue,
                None => return Err(Reason::Absent(pointer.clone())),
            };
            let holder = pointer.strip_suffix(VERSION).and_then(|holder| find(body, holder));
            if holder.is_some_and(is_collection) || is_bookmark(body, pointer) {
                self.played.list_versions.insert(meaning.clone());
            } else if holder.is_some() {
                self.played.object_versions.insert(meaning.clone());
            }
            self.words.insert(word.clone(), meaning);
        }
        Ok(())
    }

    async fn watch(&mut self, stream: &str, ask: &WrittenAsk) -> Result<Value, Reason> {
        match self.server.open(ask.request(self.target)?).await? {
            Opened::Refused(answer) => Ok(json!({"request": ask.recorded(), "response": answer.recorded()})),
            Opened::Stream { status, headers, stream: lines } => {
                let head = json!({"status": status.as_u16(), "headers": kept(&headers)});
                self.streams.insert(stream.to_owned(), lines);
                Ok(json!({"request": ask.recorded(), "watch": stream, "response": head}))
            }
        }
    }

    async fn read(&mut self, step: &Step, name: &str, how_far: &HowFar) -> Result<Value, Reason> {
        let last = match how_far {
            HowFar::Through(last) => Some(expand(last, &self.words)?),
            HowFar::Events(_) | HowFar::ToItsEnd => None,
        };
        let stream = self.streams.get_mut(name).ok_or_else(|| Reason::NoStream(name.to_owned()))?;
        let (mut events, mut ended) = (Vec::<Value>::new(), false);
        let is_enough = |events: &[Value]| match (how_far, &last) {
            (HowFar::Events(wanted), _) => events.len() >= *wanted,
            (HowFar::Through(_), Some(last)) => events.last().is_some_and(|event| is_about(event, last)),
            (HowFar::Through(_) | HowFar::ToItsEnd, _) => false,
        };
        while !is_enough(&events) {
            match self.server.next(stream).await? {
                Some(line) => events.push(event(&line)),
                None => {
                    ended = true;
                    break;
                }
            }
        }
        let body = json!({ "events": events });
        self.keep(step, &body, &BTreeMap::new())?;
        self.played.bodies.push(body);
        let shown =
            events.iter().map(|event| if step.only.is_empty() { event.clone() } else { chosen(event, &step.only) });
        Ok(json!({"watch": name, "events": shown.collect::<Vec<_>>(), "ended": ended}))
    }

    async fn settled(&mut self, ask: &WrittenAsk, holds: &BTreeMap<String, Value>) -> Result<Answer, Reason> {
        let mut waited = Duration::ZERO;
        loop {
            let answer = self.ask(ask).await?;
            if holds_in(&answer, holds) {
                return Ok(answer);
            }
            if waited >= SETTLE_MAX {
                return Err(Reason::Unsettled(told(&answer)));
            }
            self.server.pass(CHECK_INTERVAL).await;
            waited += CHECK_INTERVAL;
        }
    }

    async fn ask(&mut self, ask: &WrittenAsk) -> Result<Answer, Reason> {
        Ok(self.server.send(ask.request(self.target)?).await?)
    }

    fn written(&self, ask: &Ask) -> Result<WrittenAsk, Reason> {
        let mut headers = BTreeMap::from([
            ("Accept".to_owned(), Some(JSON.to_owned())),
            ("User-Agent".to_owned(), Some(USER_AGENT.to_owned())),
        ]);
        let body = match &ask.body {
            Body::Nothing => Body::Nothing,
            Body::Json(value) => Body::Json(expand_value(value, &self.words)?),
            Body::Text(text) => Body::Text(expand(text, &self.words)?),
            Body::Protobuf(object, damage) => Body::Protobuf(expand_value(object, &self.words)?, *damage),
        };
        if !matches!(body, Body::Nothing) {
            headers.insert("Content-Type".to_owned(), Some(JSON.to_owned()));
        }
        for (name, value) in &ask.headers {
            let value = value.as_ref().map(|value| expand(value, &self.words)).transpose()?;
            headers.insert(name.clone(), value);
        }
        let (method, path) = (expand(&ask.method, &self.words)?, expand(&ask.path, &self.words)?);
        Ok(WrittenAsk { method, path, headers, body })
    }
}

/// A request with every word replaced and every header that is sent.
struct WrittenAsk {
    method: String,
    path: String,
    headers: BTreeMap<String, Option<String>>,
    body: Body,
}

impl WrittenAsk {
    fn request(&self, target: &Target) -> Result<Request<Bytes>, Reason> {
        let path = enlarge(&self.path)?;
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
            Body::Json(value) => enlarge(&value.to_string())?.into(),
            Body::Text(text) => enlarge(text)?.into(),
            Body::Protobuf(object, damage) => protobuf::written(object, *damage),
        };
        Ok(request.body(body)?)
    }

    fn recorded(&self) -> Value {
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

/// An event of a stream: a line of JSON, or a message with its length before it.
fn event(bytes: &[u8]) -> Value {
    if bytes.starts_with(b"{") {
        return serde_json::from_slice(bytes).unwrap_or_default();
    }
    protobuf::recorded_event(bytes)
}

/// An answer in a few words, none of which is the content of an object.
fn told(answer: &Answer) -> String {
    format!("{} {}", answer.status, answer.json()["message"].as_str().unwrap_or_default())
}

/// Some places of a value, by their pointers, and what kind of thing it is.
fn chosen(value: &Value, pointers: &[String]) -> Value {
    let kind = value.get("kind").map(|kind| ("kind".to_owned(), kind.clone()));
    let chosen = pointers.iter().map(|pointer| (pointer.clone(), find(value, pointer).cloned().unwrap_or_default()));
    Value::Object(kind.into_iter().chain(chosen).collect::<Map<_, _>>())
}

/// Whether an answer is as it should be. `status` is that of HTTP; null means that nothing is there.
fn holds_in(answer: &Answer, holds: &BTreeMap<String, Value>) -> bool {
    let body = answer.json();
    holds.iter().all(|(pointer, wanted)| match pointer.as_str() {
        "status" => *wanted == answer.status.as_u16(),
        pointer => find(&body, pointer).unwrap_or(&Value::Null) == wanted,
    })
}

/// Whether an event is about an object with this name.
fn is_about(event: &Value, name: &str) -> bool {
    event.pointer("/object/metadata/name").is_some_and(|found| found == name)
}

fn is_bookmark(body: &Value, pointer: &str) -> bool {
    let event = pointer.split("/object/").next().and_then(|event| find(body, event));
    event.and_then(|event| event.get("type")).is_some_and(|kind| kind == "BOOKMARK")
}
