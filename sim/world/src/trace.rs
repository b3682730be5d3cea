//! The trace of a run: one line per event, and one hash over all lines.
//!
//! Lines come from the simulated network and API servers, from the faults, and from the logs of broker and agents.
//! They show virtual time only, so that the traces of two runs can be compared byte by byte.
//!
//! ```text
//! t+00:31.204 e00412  east       > applied ConfigMap shop/a                       > log line of a host
//! t+00:31.230 e00413  broker     < east POST /api/v1/agents/…/events 201          < response: client, request, status
//! t+10:31.204 e00414  world      ~ partition broker|east                          ~ step or fault of the scenario
//! t+10:31.260 e00415  east-api   < DELETE /api/v1/namespaces/shop/services/… 200
//! t+10:31.260 e00416  east-api   = delete Service shop/web by sindri-agent at 57  = committed write, resourceVersion
//! ```

use std::cell::RefCell;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::libc_shim;

/// Bytes of the hash that are shown.
const HASH_BYTES: usize = 8;
/// Most lines that are kept; the hash covers the others too.
const LINES_MAX: usize = 200_000;

thread_local! {
    static TRACE: RefCell<Option<Trace>> = const { RefCell::new(None) };
    static HOST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The trace of one run.
#[derive(Default)]
pub struct Trace {
    lines: Vec<String>,
    count: u64,
    hasher: Sha256,
}

impl Trace {
    /// Returns the lines in order.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Returns the hash over all lines, in hexadecimal.
    pub fn hash(&self) -> String {
        hex::encode(&self.hasher.clone().finalize()[..HASH_BYTES])
    }

    fn push(&mut self, host: &str, text: &str) {
        self.count += 1;
        let micros = libc_shim::now() / 1_000;
        let (minutes, seconds, millis) = (micros / 60_000_000, micros / 1_000_000 % 60, micros / 1_000 % 1_000);
        let line = format!("t+{minutes:02}:{seconds:02}.{millis:03} e{:05}  {host:<10} {text}", self.count);
        self.hasher.update(line.as_bytes());
        self.hasher.update(b"\n");
        if self.lines.len() < LINES_MAX {
            self.lines.push(line);
        }
    }
}

/// Starts the trace of the run on this thread.
pub fn begin() {
    TRACE.set(Some(Trace::default()));
}

/// Ends the trace and returns it.
pub fn take() -> Trace {
    TRACE.take().unwrap_or_default()
}

/// Adds a line about a host, or about the `world`.
pub fn record(host: &str, text: &str) {
    TRACE.with_borrow_mut(|trace| {
        if let Some(trace) = trace {
            trace.push(host, text);
        }
    });
}

/// Sets the host that runs from here on, to which log lines are attributed.
pub fn enter_host(name: &str) {
    HOST.with_borrow_mut(|host| name.clone_into(host));
}

/// Returns the name of the host that runs; empty before the first one, and while the name changes.
pub fn current_host() -> String {
    HOST.with(|host| host.try_borrow().map(|host| host.clone()).unwrap_or_default())
}

/// Subscriber that turns log events into lines of the trace.
pub struct LogToTrace;

struct Text(String);

impl Visit for Text {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let value = format!("{value:?}");
        if field.name() == "message" {
            self.0.insert_str(0, &value);
        } else {
            self.add(field.name(), &value);
        }
    }
}

impl Text {
    fn add(&mut self, name: &str, value: &str) {
        write!(self.0, " {name}={value}").expect("a string takes any text");
    }
}

/// Returns true for the span in which turmoil runs a host.
fn is_turmoil_host(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.name() == "node" && metadata.target().starts_with("turmoil")
}

impl Subscriber for LogToTrace {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_ours = metadata.is_event() && metadata.target().starts_with("sindri_");
        (is_ours && *metadata.level() <= tracing::Level::INFO) || is_turmoil_host(metadata)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut text = Text(String::new());
        span.record(&mut text);
        if let Some(name) = text.0.strip_prefix(" name=") {
            enter_host(name.trim_matches('"'));
        }
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        HOST.with_borrow(|host| record(host, &format!("> {}", text.0)));
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
