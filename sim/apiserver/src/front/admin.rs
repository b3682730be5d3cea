//! The administrator's hand in a served machine: faults, time, what becomes of pods, what answers in them, and snapshots, below
//! `/sindri/`.
//!
//! It stands in front of the machine as a [`Gate`] and as a clock, so that the machine itself stays what it is.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::gate::{Admission, Clock, Gate};
use super::shared::SharedServer;
use super::snapshots::{self, Snapshots};
use crate::auth::authorization_request::AuthorizationRequest;
use crate::http::error::ApiError;
use crate::http::request::{Fault, Request, StreamEnd};
use crate::http::response::Response;
use crate::http::route::route;
use crate::server::ApiServer;
use crate::state::container_rules::{ExecRule, PortRule};
use crate::state::pod_outcome::PodRule;
use crate::storage::ids::Ids;

/// Prefix of the administration paths.
pub(crate) const PREFIX: &str = "/sindri/";
/// Verbs that a rule can name.
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// Largest number of fault rules.
const RULES_MAX: usize = 1_000;
/// Longest delay of a request.
const DELAY_MAX: Duration = Duration::from_secs(600);
/// Largest advance of the time at once: ten years.
const ADVANCE_SECONDS_MAX: i64 = 10 * 366 * 86_400;
/// Largest number of due times that one advance visits.
const STEPS_MAX: usize = 1_000_000;

/// Fault of the requests that match. An absent field matches every request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FaultRule {
    /// The HTTP method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Prefix of the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verb: Option<String>,
    /// Resource, as `kubectl` names it: `configmaps`, `deployments.apps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Percentage of the matching requests; the same requests in each run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// Number of requests that it applies to; without a number, all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// Delay of the request in milliseconds.
    pub delay_milliseconds: u64,
    /// Fault after the delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<NamedFault>,
}

/// A [`Fault`] in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum NamedFault {
    /// The server rejects the request and changes nothing.
    #[serde(rename_all = "camelCase")]
    Refuse {
        /// HTTP status of the response.
        status: u16,
        /// Value of `Retry-After` in seconds.
        #[serde(default)]
        retry_after_seconds: Option<u64>,
    },
    /// The request is executed, and its response is lost.
    #[serde(rename = "loseAnswer")]
    LoseResponse,
    /// The connection breaks before the request is executed.
    Cut,
    /// The body is changed by a merge patch.
    Rewrite(Value),
    /// A watch breaks after a number of events.
    #[serde(rename_all = "camelCase")]
    BreakStream {
        /// Number of events before the break.
        #[serde(default)]
        after_events: usize,
        /// Kind of the break.
        how: StreamEnd,
    },
}

impl NamedFault {
    fn to_fault(&self) -> Fault {
        match self {
            Self::Refuse { status, retry_after_seconds } => {
                Fault::Refuse { status: *status, retry_after_secs: *retry_after_seconds }
            }
            Self::LoseResponse => Fault::LoseResponse,
            Self::Cut => Fault::CutBeforeCommit,
            Self::Rewrite(patch) => Fault::Rewrite(patch.clone()),
            Self::BreakStream { after_events, how } => Fault::BreakStream { after_events: *after_events, how: *how },
        }
    }
}

impl FaultRule {
    fn matches(&self, request: &Request) -> bool {
        self.method.as_deref().is_none_or(|method| request.method.as_str().eq_ignore_ascii_case(method))
            && self.path.as_deref().is_none_or(|path| request.path.starts_with(path))
            && self.matches_request(&AuthorizationRequest::from_request(request, &route(&request.path)))
    }

    /// True if the rule is about a request with these attributes. A broken stream applies to watches only.
    fn matches_request(&self, request: &AuthorizationRequest) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        let resource = |wanted: &str| match wanted.split_once('.') {
            Some((plural, group)) => (plural, group) == (request.resource.as_str(), request.group.as_str()),
            None => wanted == request.resource,
        };
        let is_stream = matches!(self.fault, Some(NamedFault::BreakStream { .. }));
        is(&self.verb, &request.verb)
            && self.resource.as_deref().is_none_or(resource)
            && is(&self.namespace, &request.namespace)
            && is(&self.name, &request.name)
            && (!is_stream || request.verb == "watch")
    }

    /// Returns the error in the rule itself.
    fn find_error(&self) -> Option<String> {
        let status = match &self.fault {
            Some(NamedFault::Refuse { status, .. }) => *status,
            Some(
                NamedFault::LoseResponse | NamedFault::Cut | NamedFault::Rewrite(_) | NamedFault::BreakStream { .. },
            )
            | None => 500,
        };
        if !(400..600).contains(&status) {
            return Some(format!("{status} is no status of a refusal: 400 to 599"));
        }
        if let Some(verb) = self.verb.as_ref().filter(|verb| !VERBS.contains(&verb.as_str())) {
            return Some(format!("{verb:?} is no verb: {}", VERBS.join(", ")));
        }
        if let Some(percent) = self.percent.filter(|percent| *percent > 100) {
            return Some(format!("{percent} of a hundred are too many"));
        }
        let most = u64::try_from(DELAY_MAX.as_millis()).unwrap_or(u64::MAX);
        (self.delay_milliseconds > most).then(|| format!("a request waits at most {most} milliseconds"))
    }
}

/// Body of `POST /sindri/time`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct TimeChange {
    advance_seconds: i64,
    freeze: Option<bool>,
}

struct State {
    rules: Vec<FaultRule>,
    dice: Ids,
    ahead: SignedDuration,
    frozen: Option<Timestamp>,
    snapshots: Snapshots,
}

/// Faults and time of a served machine. Clones share them.
#[derive(Clone)]
pub struct Admin {
    state: Arc<Mutex<State>>,
    base: Clock,
}

impl Admin {
    /// Creates an administration API over the time of another clock.
    #[must_use]
    pub fn new(base: Clock) -> Self {
        let state = State {
            rules: Vec::new(),
            dice: Ids::new(0),
            ahead: SignedDuration::ZERO,
            frozen: None,
            snapshots: Snapshots::new(),
        };
        Self { state: Arc::new(Mutex::new(state)), base }
    }

    /// Returns the clock of the machine.
    #[must_use]
    pub fn clock(&self) -> Clock {
        let admin = self.clone();
        Arc::new(move || admin.now())
    }

    fn with<R>(&self, using: impl FnOnce(&mut State) -> R) -> R {
        using(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn now(&self) -> Timestamp {
        let base = (self.base)();
        self.with(|state| state.frozen.unwrap_or_else(|| crate::object::fields::add_duration(base, state.ahead)))
    }

    /// Adds a fault rule.
    ///
    /// # Errors
    /// When the rule is invalid, or there are too many.
    pub fn fail(&self, rule: FaultRule) -> Result<(), String> {
        if let Some(mistake) = rule.find_error() {
            return Err(mistake);
        }
        self.with(|state| {
            if state.rules.len() >= RULES_MAX {
                return Err(format!("there are {RULES_MAX} rules already"));
            }
            state.rules.push(rule);
            Ok(())
        })
    }

    /// Removes every fault rule.
    pub fn heal(&self) {
        self.with(|state| state.rules.clear());
    }

    /// Responds to a request below `/sindri/`. The caller has checked that it comes from the administrator.
    pub(crate) fn respond(&self, server: &SharedServer, request: &Request) -> Response {
        let result = match request.path.strip_prefix(PREFIX).unwrap_or_default() {
            "faults" => self.handle_faults(request),
            "time" => self.handle_time(server, request),
            "pods" => self.handle_pods(server, request),
            "exec" => handle_exec(server, request),
            "ports" => handle_ports(server, request),
            "snapshots" => self.with(|state| snapshots::handle(&mut state.snapshots, server, request)),
            _ => Err(ApiError::NoSuchPath),
        };
        result.map_or_else(ApiError::into_response, |body| Response::json(200, &body))
    }

    fn handle_faults(&self, request: &Request) -> Result<Value, ApiError> {
        match request.method {
            Method::GET => {}
            Method::DELETE => self.heal(),
            Method::POST => self.fail(read(request)?).map_err(ApiError::bad_request)?,
            _ => return Err(ApiError::method_not_allowed()),
        }
        Ok(self.with(|state| json!({ "rules": state.rules })))
    }

    fn handle_time(&self, server: &SharedServer, request: &Request) -> Result<Value, ApiError> {
        match request.method {
            Method::GET => {}
            Method::POST => self.change_time(server, &read(request)?)?,
            _ => return Err(ApiError::method_not_allowed()),
        }
        let now = self.now();
        Ok(self.with(|state| {
            json!({"now": now.to_string(), "frozen": state.frozen.is_some(), "aheadSeconds": state.ahead.as_secs()})
        }))
    }

    /// Advances, freezes or resumes the time. Tasks that become due on the way run at their own times.
    fn change_time(&self, server: &SharedServer, change: &TimeChange) -> Result<(), ApiError> {
        let seconds = change.advance_seconds;
        if !(0..=ADVANCE_SECONDS_MAX).contains(&seconds) {
            let message = format!("time goes on by at most {ADVANCE_SECONDS_MAX} seconds at once, and never back");
            return Err(ApiError::bad_request(message));
        }
        let now = self.now();
        match change.freeze {
            Some(true) => self.with(|state| state.frozen = Some(state.frozen.unwrap_or(now))),
            Some(false) => {
                let base = (self.base)();
                self.with(|state| {
                    // It continues from the frozen time.
                    if let Some(stood) = state.frozen.take() {
                        state.ahead = stood.duration_since(base);
                    }
                });
            }
            None => {}
        }
        let step = SignedDuration::from_secs(seconds);
        let end = crate::object::fields::add_duration(now, step);
        server.with(|machine| {
            for _ in 0..STEPS_MAX {
                let Some(next) = machine.next_tick().filter(|next| *next <= end) else { break };
                machine.tick(next.max(now));
            }
        });
        self.with(|state| match &mut state.frozen {
            Some(frozen) => *frozen = crate::object::fields::add_duration(*frozen, step),
            None => state.ahead = state.ahead.saturating_add(step),
        });
        server.wake();
        Ok(())
    }

    fn handle_pods(&self, server: &SharedServer, request: &Request) -> Result<Value, ApiError> {
        let now = self.now();
        match request.method {
            Method::GET => {}
            Method::DELETE => server.with(|machine| machine.clear_pod_rules(now)),
            Method::POST => {
                let rule: PodRule = read(request)?;
                server.with(|machine| machine.add_pod_rule(now, rule));
            }
            _ => return Err(ApiError::method_not_allowed()),
        }
        Ok(server.with(|machine| json!({ "rules": machine.pod_rules() })))
    }
}

fn handle_exec(server: &SharedServer, request: &Request) -> Result<Value, ApiError> {
    match request.method {
        Method::GET => {}
        Method::DELETE => server.with(ApiServer::clear_exec_rules),
        Method::POST => {
            let rule: ExecRule = read(request)?;
            server.with(|machine| machine.add_exec_rule(rule));
        }
        _ => return Err(ApiError::method_not_allowed()),
    }
    Ok(server.with(|machine| json!({ "rules": machine.exec_rules() })))
}

fn handle_ports(server: &SharedServer, request: &Request) -> Result<Value, ApiError> {
    match request.method {
        Method::GET => {}
        Method::DELETE => server.with(ApiServer::clear_port_rules),
        Method::POST => {
            let rule: PortRule = read(request)?;
            server.with(|machine| machine.add_port_rule(rule));
        }
        _ => return Err(ApiError::method_not_allowed()),
    }
    Ok(server.with(|machine| json!({ "rules": machine.port_rules() })))
}

fn read<T: for<'a> Deserialize<'a>>(request: &Request) -> Result<T, ApiError> {
    serde_json::from_slice(&request.body).map_err(|error| ApiError::bad_request(error.to_string()))
}

impl Gate for Admin {
    fn admit(&self, _now: Timestamp, request: &Request) -> Admission {
        self.with(|state| {
            let State { rules, dice, .. } = state;
            let mut happens = |rule: &FaultRule| rule.percent.is_none_or(|percent| dice.percent(percent));
            let Some(index) = rules.iter().position(|rule| rule.matches(request) && happens(rule)) else {
                return Admission::default();
            };
            let rule = &mut state.rules[index];
            let delay = Duration::from_millis(rule.delay_milliseconds).min(DELAY_MAX);
            let fault = rule.fault.as_ref().map(NamedFault::to_fault);
            let over = rule.times.as_mut().is_some_and(|times| {
                *times = times.saturating_sub(1);
                *times == 0
            });
            if over {
                state.rules.remove(index);
            }
            Admission { delay, fault }
        })
    }
}
