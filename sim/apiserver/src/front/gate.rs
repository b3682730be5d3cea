//! Requests between the wire and the machine: their delays and faults, and the clock.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::http::request::{Fault, Request};
use crate::http::response::Response;

/// Where the time comes from.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What happens to a request before the machine sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// How long it waits.
    pub delay: Duration,
    /// What goes wrong with it then.
    pub fault: Option<Fault>,
}

/// What stands between the wire and the machine in a simulated world: decides the fault of each request and sees each
/// answer.
pub trait Gate: Send + Sync {
    /// Decides what happens to a request.
    fn admit(&self, now: Timestamp, request: &Request) -> Admission;

    /// Sees the answer to a request, before the client does.
    fn answered(&self, _now: Timestamp, _request: &Request, _response: &Response) {}
}

/// A gate that lets everything through.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenGate;

impl Gate for OpenGate {
    fn admit(&self, _now: Timestamp, _request: &Request) -> Admission {
        Admission::default()
    }
}
