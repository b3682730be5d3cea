//! Limits of the requests of one key: their rate, and the bytes of their bodies. Those of connections are in `serve/`, those of
//! generators in `quotas`.

use hyper::body::SizeHint;
use tokio::time::Instant;

use super::connection_info::CloseConnection;
use super::error_response::ErrorResponse;
use crate::broker::Broker;
use crate::closing_permits::ClosingPermit;
use crate::store::KeyHolder;

/// Size from which a body needs a permit.
const LARGE_BODY_BYTES: usize = 16 * 1024;

/// Counts a request of an agent or a generator; fails if it has sent too many in a minute.
pub(crate) fn count_request(broker: &Broker, holder: KeyHolder) -> Result<(), ErrorResponse> {
    let limit = broker.live_settings().quotas.requests_per_minute;
    let (Some(limit), KeyHolder::Agent(_) | KeyHolder::Generator(_)) = (limit, holder) else { return Ok(()) };
    broker.request_rates.count(holder, limit, Instant::now()).map_err(|wait| {
        let message = format!("a key may send {limit} requests per minute (quotas.requests_per_minute)");
        ErrorResponse::rate_limited(message, wait)
    })
}

/// Waits until a large body may be read. The permit is held until the request is answered.
pub(crate) async fn hold_body(
    broker: &Broker,
    holder: KeyHolder,
    size: SizeHint,
    close: CloseConnection,
) -> Result<Option<ClosingPermit>, ErrorResponse> {
    let limit = broker.bounds.body_bytes_max;
    let bytes = size.upper().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(limit).min(limit);
    if bytes < LARGE_BODY_BYTES {
        return Ok(None);
    }
    let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
    let permit = broker.body_permits.acquire(holder, kib, close.0).await;
    permit.map(Some).ok_or_else(|| {
        ErrorResponse::too_many("too_many_bodies", "too many large requests are received at the same time")
    })
}
