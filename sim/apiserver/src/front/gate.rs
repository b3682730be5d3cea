//! Requests between the wire and the machine: their delays and faults, and the clock.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::http::request::{Fault, Request};
use crate::http::response::Response;

/// Source of the current time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Delay and fault of a request before the machine handles it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// Delay of the request.
    pub delay: Duration,
    /// Fault after the delay.
    pub fault: Option<Fault>,
}

/// Hook between the connection and the machine: decides the fault of each request, and observes each response.
pub trait Gate: Send + Sync {
    /// Decides the delay and the fault of a request.
    fn admit(&self, now: Timestamp, request: &Request) -> Admission;

    /// Observes the response to a request before it is sent.
    fn observe_response(&self, _now: Timestamp, _request: &Request, _response: &Response) {}
}

/// A gate without delays and faults.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenGate;

impl Gate for OpenGate {
    fn admit(&self, _now: Timestamp, _request: &Request) -> Admission {
        Admission::default()
    }
}
