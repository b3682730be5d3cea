//! Requests that need webhooks: the calls are made outside of the machine, and the request is handled again with the answers.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::gate::Clock;
use super::shared::SharedServer;
use crate::http::error_response::timeout_response;
use crate::http::request::{Fault, Request};
use crate::http::response::Response;
use crate::http::webhook_call::{WebhookAnswer, WebhookAnswers, WebhookCall};
use crate::server::{Handled, WEBHOOK_ROUNDS_MAX};

/// Longest duration of a request that waits for webhooks, as in the real server.
pub(super) const REQUEST_MAX: Duration = Duration::from_secs(34);
/// Error of a call that takes too long, as Go's HTTP client words it.
const TIMED_OUT: &str = "context deadline exceeded";
/// Error of every call if nothing makes them.
const NO_CALLER: &str = "connect: connection refused";

/// Future of a call.
pub type WebhookFuture<'a> = Pin<Box<dyn Future<Output = WebhookAnswer> + Send + 'a>>;

/// Makes the calls of webhooks. The timeout of a call is applied by its user.
pub trait WebhookCaller: Send + Sync {
    /// Calls one webhook.
    fn call<'a>(&'a self, call: &'a WebhookCall) -> WebhookFuture<'a>;
}

/// Handles a request, and calls the webhooks that it needs.
pub(super) async fn handle(
    server: &SharedServer,
    clock: &Clock,
    caller: Option<&dyn WebhookCaller>,
    request: &Request,
    fault: Option<&Fault>,
) -> Response {
    let mut answers = WebhookAnswers::default();
    let end = Instant::now() + REQUEST_MAX;
    for _ in 0..WEBHOOK_ROUNDS_MAX {
        let now = clock();
        let handled = server.with(|machine| machine.try_handle(now, request, fault, &mut answers));
        let calls = match handled {
            Handled::Response(response) => return response,
            Handled::Calls(calls) => calls,
        };
        call_all(caller, &calls, end, &mut answers).await;
        if Instant::now() >= end {
            break;
        }
    }
    timeout_response()
}

/// Makes calls at the same time, and adds their answers.
pub(super) async fn call_all(
    caller: Option<&dyn WebhookCaller>,
    calls: &[WebhookCall],
    end: Instant,
    answers: &mut WebhookAnswers,
) {
    let replies = join_all(calls.iter().map(|call| call_in_time(caller, call, end))).await;
    for (call, answer) in calls.iter().zip(replies) {
        answers.add(call, answer);
    }
}

async fn call_in_time(caller: Option<&dyn WebhookCaller>, call: &WebhookCall, end: Instant) -> WebhookAnswer {
    let Some(caller) = caller else { return Err(NO_CALLER.to_owned()) };
    let end = end.min(Instant::now() + call.timeout);
    tokio::time::timeout_at(end, caller.call(call)).await.unwrap_or_else(|_| Err(TIMED_OUT.to_owned()))
}
