//! Decides when the controller runs a pass.

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::controller::ShapesController;
use super::crd::SHAPE;
use super::resync::{RESYNC, ResyncMode};
use crate::client::Objects;
use crate::list_watch::{ObjectChange, WatchStart, list_and_watch};
use crate::work_queue::backoff;

/// Capacity of the channel of changes.
const CHANGES_MAX: usize = 64;
/// Largest number of attempts of one pass in the modes without periodic passes.
const ATTEMPTS_MAX: u32 = 12;

impl ShapesController {
    /// Runs until it is dropped.
    pub async fn run(self) {
        let (sender, changes) = mpsc::channel(CHANGES_MAX);
        let start = match self.resync {
            ResyncMode::Periodic | ResyncMode::AtStart => WatchStart::List,
            ResyncMode::EventsOnly => WatchStart::WatchOnly,
        };
        let mut watches = JoinSet::new();
        watches.spawn(list_and_watch(Objects::in_all_namespaces(&self.cluster, SHAPE), (), start, sender));
        match self.resync {
            ResyncMode::Periodic => self.run_periodic(changes).await,
            ResyncMode::AtStart => {
                self.retry(PassScope::All).await;
                self.run_on_changes(changes).await;
            }
            ResyncMode::EventsOnly => self.run_on_changes(changes).await,
        }
    }

    async fn run_periodic(&self, mut changes: mpsc::Receiver<((), ObjectChange)>) {
        let (mut next, mut failures) = (Instant::now(), 0);
        loop {
            tokio::select! {
                biased; // A pass that is due covers the changes before it.
                () = sleep_until(next) => {
                    while changes.try_recv().is_ok() {}
                    let result = self.full_pass().await;
                    failures = if result.is_ok() { 0 } else { failures + 1 };
                    if let Err(error) = result {
                        tracing::info!("a pass failed: {error}");
                    }
                    next = Instant::now() + if failures == 0 { RESYNC } else { backoff(failures) };
                }
                // After a failure the backoff stays: a change does not shorten it.
                Some(_) = changes.recv() => if failures == 0 { next = Instant::now() },
            }
        }
    }

    async fn run_on_changes(&self, mut changes: mpsc::Receiver<((), ObjectChange)>) {
        while let Some((_, change)) = changes.recv().await {
            let (shapes, is_deleted) = match change {
                ObjectChange::Listed(shapes) => (shapes, false),
                ObjectChange::Applied(shape) => (vec![shape], false),
                ObjectChange::Deleted(shape) => (vec![shape], true),
            };
            for shape in &shapes {
                self.retry(PassScope::One(shape, is_deleted)).await;
            }
        }
    }

    /// Runs a pass until it succeeds, with backoff and a limited number of attempts.
    async fn retry(&self, scope: PassScope<'_>) {
        for failures in 1..=ATTEMPTS_MAX {
            let result = match scope {
                PassScope::All => self.full_pass().await,
                PassScope::One(shape, is_deleted) => self.single_pass(shape, is_deleted).await,
            };
            match result {
                Ok(()) => return,
                Err(error) => tracing::info!("a pass failed: {error}"),
            }
            sleep(backoff(failures)).await;
        }
    }
}

/// Shapes that one pass reconciles.
#[derive(Clone, Copy)]
enum PassScope<'a> {
    All,
    /// One shape, with true if it was deleted.
    One(&'a Value, bool),
}
