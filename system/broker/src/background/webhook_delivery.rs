//! Sends what waits to be sent: takes messages for a while, sends them, and notes what came of it.
//!
//! A message that was sent and whose outcome could not be noted is sent again: receivers tell by its id.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use jiff::Timestamp;
use sindri_model::LinkId;
use tokio::time::{sleep, timeout};

use crate::broker::Broker;
use crate::metrics::Delivery as Counted;
use crate::store::{AcquireDeliveries, AcquiredDelivery, AttemptOutcome, DeliveryAttempt, StoreError};
use crate::webhooks::WebhookSettings;
use crate::webhooks::schedule::{Next, after_failure};
use crate::webhooks::send::{Attempt, Delivery as Message, timeout_of};

/// Messages that are sent at once.
const BATCH_MAX: i64 = 16;
/// Longer than the longest attempt: nobody else takes a message while it is being sent.
const HOLD: Duration = Duration::from_secs(120);
/// How often to look, in case nobody says that there is something.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// After a store that did not answer.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

impl Broker {
    /// Never ends; its owner drops it. Without settings there is nothing to send with, and nothing is stored to send.
    pub(crate) async fn deliver_webhooks(&self) {
        let Some(settings) = &self.webhooks else { return };
        let name = format!("broker {}", LinkId::mint(&self.entropy));
        loop {
            match self.deliver_what_is_due(settings, &name).await {
                Ok(Looked::Sent) => {}
                Ok(Looked::NothingUntil(next)) => self.wait_for_deliveries(next).await,
                Err(_) => sleep(AGAIN_AFTER).await,
            }
        }
    }

    async fn deliver_what_is_due(&self, settings: &WebhookSettings, name: &str) -> Result<Looked, StoreError> {
        let at = self.clock.now();
        let claim = AcquireDeliveries { by: name.to_owned(), at, until: at + HOLD, limit: BATCH_MAX };
        let claimed = self.store.acquire_deliveries(claim).await?;
        if claimed.deliveries.is_empty() {
            return Ok(Looked::NothingUntil(claimed.next_at));
        }
        let sent = claimed.deliveries.into_iter().map(|claimed| self.deliver(settings, name, claimed));
        join_all(sent).await.into_iter().collect::<Result<Vec<()>, _>>()?;
        Ok(Looked::Sent)
    }

    async fn wait_for_deliveries(&self, next: Option<Timestamp>) {
        let until_next = next.map(|next| Duration::try_from(next.duration_since(self.clock.now())).unwrap_or_default());
        let wait = until_next.unwrap_or(LOOK_EVERY).min(LOOK_EVERY);
        // Whether it was told or has waited long enough: it looks.
        let _ = timeout(wait, self.memory.deliveries.notified()).await;
    }

    async fn deliver(
        &self,
        settings: &WebhookSettings,
        name: &str,
        AcquiredDelivery { delivery, webhook }: AcquiredDelivery,
    ) -> Result<(), StoreError> {
        let shown = &webhook.public;
        let open = settings.open_all(shown.id, &webhook.sealed).map_err(|error| error.to_string());
        let error = match open.and_then(|open| open.route(settings.policy)) {
            Err(error) => Some(error),
            Ok(route) => {
                let seconds = u64::try_from(shown.timeout_seconds).unwrap_or_default();
                let message = Message {
                    id: &delivery.id.to_string(),
                    at: self.clock.now(),
                    target: &route.target,
                    headers: &route.headers,
                    secret: &route.secret,
                    body: Bytes::from(delivery.payload.to_string()),
                    timeout: timeout_of(seconds).unwrap_or(LOOK_EVERY),
                };
                let Attempt { error, .. } = settings.sender.send(&message).await;
                error
            }
        };
        let at = self.clock.now();
        let next = self.next_step(at, error.is_none(), delivery.attempts + 1, shown.max_retries);
        let settlement = DeliveryAttempt { delivery: delivery.id, by: name.to_owned(), at, outcome: next, error };
        self.store.record_delivery_attempt(settlement).await.map(drop)
    }

    /// What follows an attempt.
    pub(crate) fn next_step(&self, at: Timestamp, succeeded: bool, attempt: i64, max_retries: i64) -> AttemptOutcome {
        if succeeded {
            self.metrics.webhook_delivery(Counted::Delivered);
            return AttemptOutcome::Delivered;
        }
        let number = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
        match after_failure(number(attempt), number(max_retries), &self.entropy) {
            Next::Retry(pause) => {
                self.metrics.webhook_delivery(Counted::Retried);
                AttemptOutcome::RetryAt(at + pause)
            }
            Next::Dead => {
                self.metrics.webhook_delivery(Counted::GivenUp);
                AttemptOutcome::Abandoned
            }
        }
    }
}

/// What came of looking for messages.
enum Looked {
    Sent,
    /// When the next one is due, if that is known.
    NothingUntil(Option<Timestamp>),
}
