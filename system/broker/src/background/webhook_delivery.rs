//! Delivery of webhooks: acquires deliveries for a time, sends them, and stores the results.
//!
//! A message whose result could not be stored is sent again; receivers recognize it by its id.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use jiff::Timestamp;
use sindri_model::LinkId;
use tokio::time::{sleep, timeout};

use crate::broker::Broker;
use crate::store::{AcquireDeliveries, AcquiredDelivery, AttemptOutcome, DeliveryAttempt, StoreError};
use crate::webhooks::WebhookSettings;
use crate::webhooks::schedule::{RetryDecision, decide_after_failure};
use crate::webhooks::send::{Attempt, WebhookMessage, parse_timeout};

/// Limit on the deliveries that are sent at once.
const BATCH_MAX: i64 = 16;
/// Time for which a delivery is acquired. Longer than the longest attempt, so that no other broker sends it meanwhile.
const ACQUIRE_TIME: Duration = Duration::from_secs(120);
/// Maximum time between two checks of the store, in case a notification was missed.
const CHECK_EVERY: Duration = Duration::from_secs(30);
/// Time to wait after an error of the store.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl Broker {
    /// Delivers webhooks until its owner drops it. Without settings no subscription can be stored, so it returns.
    pub(crate) async fn deliver_webhooks(&self) {
        let Some(settings) = &self.webhooks else { return };
        let name = format!("broker {}", LinkId::generate(&self.entropy));
        loop {
            match self.deliver_due(settings, &name).await {
                Ok(DueDeliveries::Sent) => {}
                Ok(DueDeliveries::NoneUntil(next)) => self.wait_for_deliveries(next).await,
                Err(_) => sleep(RETRY_AFTER).await,
            }
        }
    }

    async fn deliver_due(&self, settings: &WebhookSettings, name: &str) -> Result<DueDeliveries, StoreError> {
        let now = self.clock.now();
        let request = AcquireDeliveries { sender: name.to_owned(), now, until: now + ACQUIRE_TIME, limit: BATCH_MAX };
        let acquired = self.store.acquire_deliveries(request).await?;
        if acquired.deliveries.is_empty() {
            return Ok(DueDeliveries::NoneUntil(acquired.next_at));
        }
        let sent = acquired.deliveries.into_iter().map(|acquired| self.deliver(settings, name, acquired));
        join_all(sent).await.into_iter().collect::<Result<Vec<()>, _>>()?;
        Ok(DueDeliveries::Sent)
    }

    async fn wait_for_deliveries(&self, next: Option<Timestamp>) {
        let until_next = next.map(|next| Duration::try_from(next.duration_since(self.clock.now())).unwrap_or_default());
        let wait = until_next.unwrap_or(CHECK_EVERY).min(CHECK_EVERY);
        // The store is checked after a notification and after a timeout alike.
        let _ = timeout(wait, self.memory.deliveries.notified()).await;
    }

    async fn deliver(
        &self,
        settings: &WebhookSettings,
        name: &str,
        AcquiredDelivery { delivery, webhook }: AcquiredDelivery,
    ) -> Result<(), StoreError> {
        let public = &webhook.public;
        let decrypted = settings.decrypt_all(public.id, &webhook.encrypted).map_err(|error| error.to_string());
        let error = match decrypted.and_then(|parts| parts.check_route(settings.policy)) {
            Err(error) => Some(error),
            Ok(route) => {
                let seconds = u64::try_from(public.timeout_seconds).unwrap_or_default();
                let message = WebhookMessage {
                    id: &delivery.id.to_string(),
                    sent_at: self.clock.now(),
                    target: &route.target,
                    headers: &route.headers,
                    secret: &route.secret,
                    body: Bytes::from(delivery.payload.to_string()),
                    timeout: parse_timeout(seconds).unwrap_or(CHECK_EVERY),
                };
                let Attempt { error, .. } = settings.sender.send(&message).await;
                error
            }
        };
        let ended_at = self.clock.now();
        let outcome = self.decide_outcome(ended_at, error.is_none(), delivery.attempts + 1, public.max_retries);
        let attempt = DeliveryAttempt { delivery: delivery.id, sender: name.to_owned(), ended_at, outcome, error };
        self.store.record_delivery_attempt(attempt).await.map(drop)
    }

    /// Decides if a failed delivery is retried, and counts the attempt.
    pub(crate) fn decide_outcome(
        &self,
        ended_at: Timestamp,
        succeeded: bool,
        attempt: i64,
        max_retries: i64,
    ) -> AttemptOutcome {
        let outcome = match succeeded {
            true => AttemptOutcome::Delivered,
            false => match decide_after_failure(to_u32(attempt), to_u32(max_retries), &self.entropy) {
                RetryDecision::Retry(pause) => AttemptOutcome::RetryAt(ended_at + pause),
                RetryDecision::Dead => AttemptOutcome::Abandoned,
            },
        };
        self.metrics.record_delivery(outcome);
        outcome
    }
}

fn to_u32(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Result of one search for due deliveries.
enum DueDeliveries {
    Sent,
    /// Nothing is due; the time of the next delivery, if there is one.
    NoneUntil(Option<Timestamp>),
}
