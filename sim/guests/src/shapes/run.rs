//! When the controller looks.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::act::Shapes;
use super::definition::SHAPE;
use crate::client::Objects;
use crate::follow::{Beginning, Change, follow};
use crate::queue::backoff;

/// Everything is looked at again after this, whatever happens.
pub const RESYNC: Duration = Duration::from_secs(30);
/// How many changes may wait.
const CHANGES_MAX: usize = 64;
/// How often one declaration is tried by those who look at one only.
const TRIES_MAX: u32 = 12;

/// When it looks, and at what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// At everything: at the start, whenever a declaration changes, and once in a while.
    Always,
    /// At everything at the start, then only at declarations that change. Wrong, on purpose: things change too.
    Once,
    /// Only at declarations that change. Wrong, on purpose: nobody tells what happened while it was down.
    Events,
}

impl Shapes {
    /// Runs until it is dropped.
    pub async fn run(self) {
        let (tell, changes) = mpsc::channel(CHANGES_MAX);
        let beginning = match self.sight {
            Sight::Always | Sight::Once => Beginning::List,
            Sight::Events => Beginning::WatchOnly,
        };
        let mut watches = JoinSet::new();
        watches.spawn(follow(Objects::everywhere(&self.cluster, SHAPE), (), beginning, tell));
        match self.sight {
            Sight::Always => self.look_always(changes).await,
            Sight::Once => {
                self.insist(Look::Everywhere).await;
                self.look_at_changes(changes).await;
            }
            Sight::Events => self.look_at_changes(changes).await,
        }
    }

    async fn look_always(&self, mut changes: mpsc::Receiver<((), Change)>) {
        let (mut next, mut failures) = (Instant::now(), 0);
        loop {
            tokio::select! {
                biased; // a pass that is due has seen what changed before it
                () = sleep_until(next) => {
                    while changes.try_recv().is_ok() {}
                    let passed = self.full_pass().await;
                    failures = if passed.is_ok() { 0 } else { failures + 1 };
                    if let Err(failure) = passed {
                        tracing::info!("a pass failed: {failure}");
                    }
                    next = Instant::now() + if failures == 0 { RESYNC } else { backoff(failures) };
                }
                // After a failure its wait stands: a change is no reason to hurry.
                Some(_) = changes.recv() => if failures == 0 { next = Instant::now() },
            }
        }
    }

    async fn look_at_changes(&self, mut changes: mpsc::Receiver<((), Change)>) {
        while let Some((_, change)) = changes.recv().await {
            let (declarations, is_gone) = match change {
                Change::Listed(declarations) => (declarations, false),
                Change::Seen(declaration) => (vec![declaration], false),
                Change::Gone(declaration) => (vec![declaration], true),
            };
            for declaration in &declarations {
                self.insist(Look::At(declaration, is_gone)).await;
            }
        }
    }

    /// Tries until it works, ever more slowly, and not for ever.
    async fn insist(&self, look: Look<'_>) {
        for failures in 1..=TRIES_MAX {
            let passed = match look {
                Look::Everywhere => self.full_pass().await,
                Look::At(declaration, is_gone) => self.narrow_pass(declaration, is_gone).await,
            };
            match passed {
                Ok(()) => return,
                Err(failure) => tracing::info!("a pass failed: {failure}"),
            }
            sleep(backoff(failures)).await;
        }
    }
}

/// At what one pass looks.
#[derive(Clone, Copy)]
enum Look<'a> {
    Everywhere,
    /// At one declaration, which is there or gone.
    At(&'a Value, bool),
}
