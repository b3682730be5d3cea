//! Knowledge of what the broker has stored about the agent.
//!
//! A session begins by reading it. After that only this process reports, so its own reports are all that changes. A new
//! session begins when that is not certain any more: the broker's database was restored, or another process has reported.

use std::time::Duration;

use sindri_client::{Client, ClientError};
use sindri_model::{AgentId, Epoch, RevisionId};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::outcome::{OutcomeReporter, StoredOutcomes};
use crate::cluster::write_gate::WriteGate;

/// Time that a session waits for the Lease before it begins without an announcement.
const LEASE_WAIT_MAX: Duration = Duration::from_secs(5);

/// Shortest time between the beginnings of two sessions of a process that holds the Lease, if both end because another process
/// reports: both may hold it by mistake for a while.
const SESSION_MIN: Duration = Duration::from_secs(10);

/// Sessions of one process.
pub struct ReportSessions {
    /// Id of the agent.
    pub agent: AgentId,
    /// Name of this process and its Lease; `None` without leader election.
    pub process: Option<(String, WriteGate)>,
    /// Number of the last session, and the session unless it has ended.
    pub current: Mutex<(u32, Option<Session>)>,
}

/// One session.
pub struct Session {
    epoch: Epoch,
    began: Instant,
    /// True if this process has announced itself as the leader.
    is_announced: bool,
    outcomes: StoredOutcomes,
}

impl ReportSessions {
    /// Returns a reporter for a revision and the number of its session, which begins if there is none. In it, what was
    /// reported in another session may have to be reported again.
    pub async fn create_reporter(
        &self,
        broker: &Client,
        revision: RevisionId,
        epoch: Epoch,
    ) -> Result<(u32, OutcomeReporter), ClientError> {
        let (number, current) = &mut *self.current.lock().await;
        let is_valid = |session: &&Session| session.epoch == epoch && (session.is_announced || !self.holds_lease());
        if let Some(session) = current.as_ref().filter(is_valid) {
            return Ok((*number, session.outcomes.reporter(revision)));
        }
        *current = None;
        let is_announced = self.announce(broker).await?;
        let outcomes = StoredOutcomes::from_events(self.agent, broker.list_outcomes(self.agent).await?);
        let reporter = outcomes.reporter(revision);
        *number += 1;
        *current = Some(Session { epoch, began: Instant::now(), is_announced, outcomes });
        Ok((*number, reporter))
    }

    /// Records what a reporter has reported, among the `current` revisions.
    pub async fn record(&self, reporter: &OutcomeReporter, current: &[RevisionId]) {
        if let (_, Some(session)) = &mut *self.current.lock().await {
            session.outcomes.record(reporter, current);
        }
    }

    /// Ends the session, because another process has reported. Returns true if the next one may begin at once: this process holds
    /// the Lease, and the session has lasted for a while.
    pub async fn end(&self) -> bool {
        let ended = self.current.lock().await.1.take();
        self.holds_lease() && ended.is_none_or(|session| session.began.elapsed() >= SESSION_MIN)
    }

    /// Announces this process as the leader if it holds the Lease; returns true if it does. Reports without an announcement
    /// are those about a cluster that cannot be reached.
    async fn announce(&self, broker: &Client) -> Result<bool, ClientError> {
        let Some((process, lease)) = &self.process else { return Ok(false) };
        if timeout(LEASE_WAIT_MAX, lease.wait_until_open()).await.is_err() {
            return Ok(false);
        }
        match broker.announce_leader(self.agent, process).await {
            Err(error) if error.is_transient() => Err(error),
            // An older broker, or a proxy that does not know the route. Outcomes are not withheld for that: if another process
            // is announced, the reports are rejected, and another session begins.
            Err(error) => {
                tracing::warn!("{error}");
                Ok(true)
            }
            Ok(()) => Ok(true),
        }
    }

    /// Returns true if this process holds the Lease.
    fn holds_lease(&self) -> bool {
        self.process.as_ref().is_some_and(|(_, lease)| lease.is_open())
    }
}
