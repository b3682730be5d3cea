//! Checks of the quotas of a generator. Requests of administrators have none.

use http::StatusCode;
use sindri_model::GeneratorId;
use tokio::time::Instant;

use crate::api::http::authentication::Actor;
use crate::api::http::error_response::ErrorResponse;
use crate::broker::Broker;
use crate::quotas::ExceededQuota;
use crate::store::{GeneratorUsage, KeyHolder};

/// Counts a submission of a generator; fails if it has sent too many in a minute.
pub(crate) fn count_submission(broker: &Broker, actor: Actor) -> Result<(), ErrorResponse> {
    let limit = broker.live_settings().quotas.submissions_per_minute;
    let (Some(limit), KeyHolder::Generator(_)) = (limit, actor.holder) else { return Ok(()) };
    broker.submission_rates.count(actor.holder, limit, Instant::now()).map_err(|wait| {
        let message = format!("a generator may submit {limit} times per minute (quotas.submissions_per_minute)");
        ErrorResponse::rate_limited(message, wait)
    })
}

/// Checks that a generator may create another stack.
pub(crate) async fn check_new_stack(broker: &Broker, actor: Actor) -> Result<(), ErrorResponse> {
    check(broker, actor, GeneratorUsage { stacks: 1, revision_bytes: 0 }).await
}

/// Checks that a generator may store another revision of this size.
pub(crate) async fn check_new_revision(broker: &Broker, actor: Actor, bytes: usize) -> Result<(), ErrorResponse> {
    check(broker, actor, GeneratorUsage { stacks: 0, revision_bytes: bytes as u64 }).await
}

async fn check(broker: &Broker, actor: Actor, added: GeneratorUsage) -> Result<(), ErrorResponse> {
    let quotas = broker.live_settings().quotas;
    let KeyHolder::Generator(generator) = actor.holder else { return Ok(()) };
    if !quotas.limits_usage() || broker.quota_usage.add(generator, added, &quotas, Instant::now()).is_ok() {
        return Ok(());
    }
    let usage = broker.store.get_generator_usage(generator).await?;
    let now = Instant::now();
    broker.quota_usage.set(generator, usage, now);
    match broker.quota_usage.add(generator, added, &quotas, now) {
        Err(Some(exceeded)) => Err(quota_exceeded(generator, exceeded, usage)),
        Ok(()) | Err(None) => Ok(()),
    }
}

fn quota_exceeded(generator: GeneratorId, exceeded: ExceededQuota, usage: GeneratorUsage) -> ErrorResponse {
    let message = match exceeded {
        ExceededQuota::Stacks(limit) => {
            format!("generator {generator} has {} stacks, and may have {limit} (quotas.stacks)", usage.stacks)
        }
        ExceededQuota::RevisionBytes(limit) => format!(
            "the revisions of generator {generator} have {} bytes, and may have {limit} (quotas.revision_bytes)",
            usage.revision_bytes
        ),
    };
    ErrorResponse::new(StatusCode::FORBIDDEN, "quota_exceeded", message)
}
