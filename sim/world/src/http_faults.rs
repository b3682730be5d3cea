//! Fault injection at a simulated API server: the faults of a scenario, the faults of an exploration, and a record of
//! the requests of one client, which is the agent or a guest controller.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Method, Uri};
use jiff::Timestamp;
use sindri_apiserver::{Admission, Fault, Gate, Request, Response, StoredKey};

use crate::exploration::{RequestFault, RequestFaults};
use crate::journal::AGENT_USER_AGENT;
use crate::{host_panic, libc_shim, trace};

/// Words that a request line contains, or does not contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPattern(Vec<String>);

impl RequestPattern {
    /// Parses words separated by white space; one that starts with `!` must not occur.
    pub fn parse(text: &str) -> Self {
        Self(text.split_whitespace().map(str::to_owned).collect())
    }

    /// Returns true if a request line has every word.
    pub fn matches(&self, line: &str) -> bool {
        self.0.iter().all(|word| match word.strip_prefix('!') {
            Some(absent) => !line.contains(absent),
            None => line.contains(word.as_str()),
        })
    }
}

impl fmt::Display for RequestPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join(" "))
    }
}

/// A fault of one request.
#[derive(Clone, Debug)]
pub enum InjectedFault {
    /// The API server has this fault when the request arrives.
    Server(Fault),
    /// The code of the client panics when it sends the request.
    Panic,
}

impl InjectedFault {
    fn is_panic(&self) -> bool {
        matches!(self, Self::Panic)
    }
}

/// A fault that a scenario injects.
#[derive(Clone, Debug)]
pub struct InjectionRule {
    /// Requests that it applies to.
    pub requests: RequestPattern,
    /// The fault.
    pub fault: InjectedFault,
    /// Number of requests that are still affected; `None` until the rule is removed.
    pub times: Option<u32>,
}

/// A request of the client that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRequest {
    /// Virtual time at which it arrived.
    pub at: Duration,
    /// The same on the clock of the API server.
    pub server_time: Timestamp,
    /// Method and path, followed by `dry-run` for a dry run and by `watch` for a watch, as in the trace.
    pub line: String,
}

/// A rule in force.
struct ActiveRule {
    rule: InjectionRule,
    has_matched: bool,
}

#[derive(Default)]
struct State {
    rules: Vec<ActiveRule>,
    /// Patterns of removed rules that no request matched.
    unmatched: Vec<RequestPattern>,
    exploration: Option<RequestFaults>,
    /// Fault of the request with this number, counted from 1.
    planned: Option<(usize, RequestFault)>,
    requests: Vec<RecordedRequest>,
    must_kill_client: bool,
}

/// Fault injection at one API server.
pub struct FaultInjector {
    host: String,
    /// Prefix of the user agent of the client whose requests are recorded and fail; other clients are not affected.
    client: String,
    state: Mutex<State>,
}

impl FaultInjector {
    /// Creates an injector without faults for the requests of the agent to the API server on this host.
    pub fn new(host: String) -> Self {
        Self::for_client(host, AGENT_USER_AGENT)
    }

    /// Creates one for another client, by the prefix of its user agent.
    pub fn for_client(host: String, client: &str) -> Self {
        Self { host, client: client.to_owned(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a fault of a scenario.
    pub fn add_rule(&self, rule: InjectionRule) {
        self.state().rules.push(ActiveRule { rule, has_matched: false });
    }

    /// Removes every fault of the scenario.
    pub fn clear_rules(&self) {
        let mut state = self.state();
        let removed = std::mem::take(&mut state.rules);
        state.unmatched.extend(removed.into_iter().filter(|rule| !rule.has_matched).map(|rule| rule.rule.requests));
    }

    /// Lists the patterns of removed faults that no request matched.
    pub fn unmatched_patterns(&self) -> Vec<RequestPattern> {
        self.state().unmatched.clone()
    }

    /// Starts the faults of an exploration, or ends them.
    pub fn set_exploration(&self, faults: Option<RequestFaults>) {
        self.state().exploration = faults;
    }

    /// Plans the fault of the request with this number, counted from 1, for tests that try every request in turn.
    pub fn inject_at(&self, number: usize, fault: RequestFault) {
        self.state().planned = Some((number, fault));
    }

    /// Adds a line to the trace of this API server.
    pub fn trace(&self, text: &str) {
        trace::record(&self.host, text);
    }

    /// Returns true if the client has to be killed, once per kill.
    pub fn take_client_kill(&self) -> bool {
        std::mem::take(&mut self.state().must_kill_client)
    }

    /// Panics if the scenario wants the client to panic when it sends this request.
    pub fn panic_if_planned(&self, method: &Method, uri: &Uri) {
        let query = uri.query().unwrap_or_default();
        let line = describe_request(method, uri.path(), query.contains("dryRun="), query.contains("watch="));
        let is_planned = self.state().rules.iter_mut().any(|rule| rule.apply(&line, true).is_some());
        if is_planned {
            host_panic::panic_as_planned(&line);
        }
    }

    /// Returns the number of requests of the client so far.
    pub fn request_count(&self) -> usize {
        self.state().requests.len()
    }

    /// Returns when the client last listed the objects of the resource of this key, in its namespace, up to a time.
    pub fn last_list(&self, key: &StoredKey, until: Timestamp) -> Option<Timestamp> {
        let root = if key.group.is_empty() { "GET /api/".to_owned() } else { format!("GET /apis/{}/", key.group) };
        let end = match &key.namespace {
            Some(namespace) => format!("/namespaces/{namespace}/{}", key.plural),
            None => format!("/{}", key.plural),
        };
        let is_list = |request: &&RecordedRequest| {
            request.server_time <= until && request.line.starts_with(&root) && request.line.ends_with(&end)
        };
        self.state().requests.iter().rev().find(is_list).map(|request| request.server_time)
    }

    /// Lists the requests of the client so far that match.
    pub fn requests(&self, pattern: &RequestPattern) -> Vec<RecordedRequest> {
        self.state().requests.iter().filter(|request| pattern.matches(&request.line)).cloned().collect()
    }
}

fn request_line(request: &Request) -> String {
    let has = |parameter| request.query.contains_key(parameter);
    describe_request(&request.method, &request.path, has("dryRun"), has("watch"))
}

fn describe_request(method: &Method, path: &str, is_dry_run: bool, is_watch: bool) -> String {
    let dry_run = if is_dry_run { " dry-run" } else { "" };
    let watch = if is_watch { " watch" } else { "" };
    format!("{method} {path}{dry_run}{watch}")
}

impl ActiveRule {
    /// Returns the fault of a request, if the rule applies to it.
    fn apply(&mut self, line: &str, is_panic: bool) -> Option<InjectedFault> {
        let rule = &mut self.rule;
        if rule.times == Some(0) || rule.fault.is_panic() != is_panic || !rule.requests.matches(line) {
            return None;
        }
        self.has_matched = true;
        rule.times = rule.times.map(|times| times - 1);
        Some(rule.fault.clone())
    }
}

impl Gate for FaultInjector {
    fn admit(&self, server_time: Timestamp, request: &Request) -> Admission {
        if !request.headers.user_agent.starts_with(&self.client) {
            return Admission::default();
        }
        let line = request_line(request);
        let mut state = self.state();
        let at = Duration::from_nanos(libc_shim::now());
        state.requests.push(RecordedRequest { at, server_time, line: line.clone() });
        let scenario_fault = state.rules.iter_mut().find_map(|rule| match rule.apply(&line, false)? {
            InjectedFault::Server(fault) => Some(fault),
            InjectedFault::Panic => None,
        });
        let mut chosen = state.exploration.as_mut().map(RequestFaults::choose).unwrap_or_default();
        let number = state.requests.len();
        if let Some((_, planned)) = state.planned.take_if(|(planned, _)| *planned == number) {
            chosen = planned;
        }
        if chosen.kill {
            state.must_kill_client = true;
        }
        Admission { delay: Duration::ZERO, fault: scenario_fault.or(chosen.fault) }
    }

    fn observe_response(&self, _: Timestamp, request: &Request, response: &Response) {
        let status = response.status().map_or_else(|| "cut".to_owned(), |status| status.to_string());
        trace::record(&self.host, &format!("< {} {status}", request_line(request)));
    }
}
