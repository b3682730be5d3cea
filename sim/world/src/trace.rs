//! What happened in a run, line by line, and one hash over all of it.
//!
//! Lines come from the simulated API servers, from the faults, and from what broker and agents log by
//! themselves: production logging is the trace. Virtual time only, so that two runs can be compared byte by byte.
//!
//! ```text
//! t+00:31.204 e0412  east      > applied ConfigMap shop/a          who and what, in the order of time
//! t+10:31.204 e0413  world     ~ partition broker|east             ~ is a fault or an action from outside
//! t+10:31.260 e0414  east-api  < DELETE /api/v1/…  200             < is an API server's answer
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::shim;

/// The most lines that are kept; the hash goes on beyond them.
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
    by_host: BTreeMap<String, u64>,
    hasher: Sha256,
}

impl Trace {
    /// Every line, in order.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The hash over all lines, in hex.
    pub fn hash(&self) -> String {
        self.hasher.clone().finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    fn push(&mut self, host: &str, text: &str) {
        self.count += 1;
        let micros = shim::now() / 1_000;
        let (minutes, seconds, millis) = (micros / 60_000_000, micros / 1_000_000 % 60, micros / 1_000 % 1_000);
        let line = format!("t+{minutes:02}:{seconds:02}.{millis:03} e{:05}  {host:<10} {text}", self.count);
        self.hasher.update(line.as_bytes());
        self.hasher.update(b"\n");
        if self.lines.len() < LINES_MAX {
            self.lines.push(line);
        }
    }
}

/// Starts the trace of this thread's run.
pub fn begin() {
    TRACE.set(Some(Trace::default()));
}

/// Ends it and hands it out.
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

/// Says which host runs from here on; its log lines are its own.
pub fn enter_host(name: &str) {
    HOST.with_borrow_mut(|host| name.clone_into(host));
}

/// How many lines the programs of this host logged since the last call for it.
pub fn take_lines_of(host: &str) -> u64 {
    TRACE.with_borrow_mut(|trace| trace.as_mut().and_then(|trace| trace.by_host.remove(host)).unwrap_or(0))
}

/// Turns what programs log into lines.
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

/// The span by which turmoil says which host it runs.
fn is_turmoil_host(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.name() == "node" && metadata.target().starts_with("turmoil")
}

impl Subscriber for LogToTrace {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let ours = metadata.is_event() && metadata.target().starts_with("sindri_");
        // A request that only reads is no news to people; here every answer counts.
        let is_request = ours && metadata.target() == "sindri_broker::api::http::request_log";
        is_request || (ours && *metadata.level() <= tracing::Level::INFO) || is_turmoil_host(metadata)
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
        HOST.with_borrow(|host| {
            record(host, &format!("> {}", text.0));
            TRACE.with_borrow_mut(|trace| {
                if let Some(trace) = trace {
                    *trace.by_host.entry(host.clone()).or_default() += 1;
                }
            });
        });
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
