//! Failed logins: counted against their source, and recorded for the audit log.

use std::net::IpAddr;
use std::time::Duration;

use http::StatusCode;
use sindri_model::Pak;
use tokio::time::Instant;

use super::error_response::ErrorResponse;
use crate::broker::Broker;
use crate::store::{FailedLogin, LoginFailure};
use crate::throttle::ThrottleSource;

/// Characters of a key that the audit log has at most: those of its short token.
const KEY_PREFIX_CHARS: usize = 8;

/// Counts a wrong key or token and returns its error, or another one if there were too many.
pub(super) fn reject_credential(
    broker: &Broker,
    client: Option<IpAddr>,
    pak: Option<&Pak>,
    error: ErrorResponse,
) -> ErrorResponse {
    let source = client.map(ThrottleSource::from_address);
    match source.and_then(|source| broker.throttle.record_failure(source, pak.map(Pak::short), Instant::now())) {
        Some(wait) => too_many_failures(broker, wait),
        None => error,
    }
}

/// Records a failed login for the audit log, which is written later.
pub(super) fn record_failure(broker: &Broker, client: Option<IpAddr>, pak: Option<&Pak>, reason: LoginFailure) {
    let time = broker.clock.now();
    let key_prefix = pak.map(|pak| pak.short().chars().take(KEY_PREFIX_CHARS).collect());
    let login = FailedLogin { time, peer: client, key_prefix, reason, unrecorded: 0 };
    broker.memory.failed_logins.insert(login, Instant::now());
}

/// Returns the error for a source that has sent too many wrong keys or tokens.
pub(super) fn too_many_failures(broker: &Broker, wait: Duration) -> ErrorResponse {
    broker.metrics.record_throttled_key();
    let message = "too many wrong keys were sent from this address";
    ErrorResponse::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", message).with_retry_after(wait)
}
