//! Delivery of webhooks: acquires deliveries for a time, sends them, and stores the results.
//!
//! A message whose result could not be stored is sent again; receivers recognize it by its id.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use jiff::Timestamp;
use sindri_model::{LinkId, WebhookId};
use tokio::time::timeout;

use crate::broker::Broker;
use crate::store::{
    AcquireDeliveries, AcquiredDeliveries, AcquiredDelivery, AttemptOutcome, DeliveryAttempt, StoreError,
};
use crate::webhooks::WebhookSettings;
use crate::webhooks::schedule::{RetryDecision, decide_after_failure};
use crate::webhooks::send::{Attempt, WebhookMessage, parse_timeout};

/// Limit on the subscriptions to which messages are sent at once.
const SUBSCRIPTIONS_MAX: usize = 256;
/// Limit on the messages that are sent to one subscription at once.
const EACH_MAX: usize = 4;
/// Time for which a delivery is acquired. Longer than the longest attempt, so that no other broker sends it meanwhile.
const ACQUIRE_TIME: Duration = Duration::from_secs(120);
/// Maximum time between two checks of the store, in case a notification was missed.
const CHECK_EVERY: Duration = Duration::from_secs(30);
/// Time to wait after an error of the store.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl Broker {
    /// Delivers webhooks until its owner drops it. Without settings no subscription can be stored, so it returns.
    ///
    /// Each subscription has its own attempts in flight, so that a receiver that does not respond delays no other.
    pub(crate) async fn deliver_webhooks(&self) {
        let Some(settings) = &self.webhooks else { return };
        let name = format!("broker {}", LinkId::generate(&self.entropy));
        let (mut sending, mut busy) = (FuturesUnordered::new(), BTreeSet::new());
        loop {
            let wait = match self.acquire_due(&name, &busy).await {
                Ok(acquired) if acquired.deliveries.is_empty() => self.time_until(acquired.next_at),
                Ok(acquired) => {
                    for (webhook, deliveries) in group_by_webhook(acquired.deliveries) {
                        busy.insert(webhook);
                        let sent = deliveries.into_iter().map(|delivery| self.deliver(settings, &name, delivery));
                        sending.push(join_all(sent).map(move |_| webhook));
                    }
                    continue;
                }
                Err(_) => RETRY_AFTER,
            };
            tokio::select! {
                biased; // Ended attempts first: their subscriptions may have more messages.
                Some(webhook) = sending.next() => drop(busy.remove(&webhook)),
                // The store is checked after a notification and after a timeout alike.
                _ = timeout(wait, self.memory.deliveries.notified()) => {}
            }
        }
    }

    /// Acquires messages of subscriptions that are not busy.
    async fn acquire_due(&self, name: &str, busy: &BTreeSet<WebhookId>) -> Result<AcquiredDeliveries, StoreError> {
        let now = self.clock.now();
        let limit = SUBSCRIPTIONS_MAX.saturating_sub(busy.len());
        if limit == 0 {
            return Ok(AcquiredDeliveries { deliveries: Vec::new(), next_at: None });
        }
        let request = AcquireDeliveries {
            sender: name.to_owned(),
            now,
            until: now + ACQUIRE_TIME,
            limit,
            limit_each: EACH_MAX,
            busy: busy.clone(),
        };
        self.store.acquire_deliveries(request).await
    }

    fn time_until(&self, next: Option<Timestamp>) -> Duration {
        let until_next = next.map(|next| Duration::try_from(next.duration_since(self.clock.now())).unwrap_or_default());
        until_next.unwrap_or(CHECK_EVERY).min(CHECK_EVERY)
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

fn group_by_webhook(deliveries: Vec<AcquiredDelivery>) -> BTreeMap<WebhookId, Vec<AcquiredDelivery>> {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for delivery in deliveries {
        groups.entry(delivery.webhook.public.id).or_default().push(delivery);
    }
    groups
}
