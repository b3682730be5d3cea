//! Takes the stacks that are due, in the order of their sequences, and makes a pass of each.
//!
//! A pass begins when the one before it has ended, or has taken so long that the others shall not wait for it any more:
//! so the order is kept where everything works, and one stack that does not cannot hold up the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use sindri_model::StackId;
use sindri_model::wire::{DeploymentObject, EventStatus};
use tokio::time::{Instant, sleep_until};

use crate::agent::Agent;
use crate::pass::{Passed, StackMemory};
use crate::poll::Target;
use crate::queue::{Queue, Why};
use crate::report::{Outcome, Recorded, Reporter};
use crate::watches::Watches;

/// How long the others wait for one pass.
const TURN_MAX: Duration = Duration::from_secs(2);
/// The most passes at once.
const PASSES_MAX: usize = 16;
/// A pass that takes longer is given up: the next one begins from what it finds.
const PASS_MAX: Duration = Duration::from_secs(15 * 60);
/// A deletion that takes longer than so many passes is reported: a finalizer may wait for ever.
const SILENT_WAITS: u32 = 10;
/// After something was put right, and again soon after: how long until the next time. Twice as long each further time.
const REST_FIRST: Duration = Duration::from_secs(1);

/// Makes the passes.
pub(crate) struct Worker<'a> {
    pub agent: &'a Agent,
    pub target: &'a Target,
    pub queue: &'a Queue,
    pub watches: &'a Watches,
    pub recorded: Recorded,
}

/// A stack that is due.
enum Due {
    Now(Arc<DeploymentObject>, Why),
    /// Not yet.
    At(Instant),
}

/// What a stack remembers between its passes. All of it can be lost: a fresh process finds it again.
#[derive(Default)]
struct Known {
    stack: StackMemory,
    reporter: Option<Reporter>,
    /// Passes in a row that found deleted objects not yet gone.
    waits: u32,
    /// Passes in a row that had to put something right that nobody had asked to be changed.
    corrections: u32,
    /// The next such pass.
    rests_until: Option<Instant>,
}

impl Worker<'_> {
    /// For ever.
    pub(crate) async fn work(&self) -> Infallible {
        let mut idle: BTreeMap<StackId, Known> = BTreeMap::new();
        let (mut running, mut busy) = (FuturesUnordered::new(), BTreeSet::new());
        let mut turn: Option<(StackId, Instant)> = None;
        loop {
            turn = turn.filter(|(stack, until)| busy.contains(stack) && *until > Instant::now());
            let may_begin = turn.is_none() && running.len() < PASSES_MAX;
            let next = if may_begin { self.next(&busy, &idle) } else { None };
            let wakes_at = match next {
                Some(Due::Now(object, why)) => {
                    let stack = object.stack_id;
                    self.queue.begin(stack);
                    busy.insert(stack);
                    turn = Some((stack, Instant::now() + TURN_MAX));
                    running.push(self.round(object, why, idle.remove(&stack).unwrap_or_default()));
                    continue;
                }
                Some(Due::At(time)) => Some(time),
                None => turn.map(|(_, until)| until),
            };
            tokio::select! {
                biased; // what ended first: it makes room
                Some((stack, known)) = running.next() => {
                    busy.remove(&stack);
                    idle.insert(stack, known);
                    self.forget(&mut idle);
                }
                () = self.queue.asked() => self.forget(&mut idle),
                () = at(wakes_at) => {}
            }
        }
    }

    /// The first stack that is due and has no pass under way.
    fn next(&self, busy: &BTreeSet<StackId>, idle: &BTreeMap<StackId, Known>) -> Option<Due> {
        let mut earliest: Option<Instant> = None;
        for object in self.target.objects() {
            let Some(why) = self.queue.why(object.stack_id).filter(|_| !busy.contains(&object.stack_id)) else {
                continue;
            };
            let rests_until = idle.get(&object.stack_id).and_then(|known| known.rests_until);
            match rests_until.filter(|until| why == Why::Seen && *until > Instant::now()) {
                None => return Some(Due::Now(object, why)),
                Some(until) => earliest = Some(earliest.map_or(until, |earliest| earliest.min(until))),
            }
        }
        earliest.map(Due::At)
    }

    /// Forgets stacks of which nothing is wanted any more.
    fn forget(&self, idle: &mut BTreeMap<StackId, Known>) {
        let wanted: BTreeSet<StackId> = self.target.objects().iter().map(|object| object.stack_id).collect();
        // An agent that rests is shown nothing, and shall find what it knows when it is woken.
        if !wanted.is_empty() {
            idle.retain(|stack, _| wanted.contains(stack));
            self.queue.retain(|stack| wanted.contains(&stack));
        }
    }

    /// One pass and its report.
    async fn round(&self, object: Arc<DeploymentObject>, why: Why, mut known: Known) -> (StackId, Known) {
        let reporter = match known.reporter.take() {
            Some(reporter) if reporter.is_about(object.id) => reporter,
            _ => self.recorded.reporter(object.id),
        };
        let reporter = known.reporter.insert(reporter);
        let is_confirmed = object.is_deletion_marker && reporter.is_known(&Outcome::success());
        // Once the broker has seen that, it stops sending it.
        if !is_confirmed {
            let interval = self.agent.settings.polling_interval;
            let passed = tokio::time::timeout(PASS_MAX, self.agent.pass(&object, &mut known.stack, self.watches)).await;
            let outcome = match passed {
                Ok(Ok(passed)) => {
                    known.carried_out(why, &passed, interval);
                    known.outcome(passed)
                }
                Ok(Err(error)) => {
                    tracing::warn!("stack {}: {error}", object.stack_id);
                    Some(Outcome::failure(error))
                }
                Err(_) => {
                    known.stack = StackMemory::default();
                    Some(Outcome::failure(format!("the pass took longer than {} s", PASS_MAX.as_secs())))
                }
            };
            if outcome.as_ref().is_some_and(|outcome| outcome.status == EventStatus::Failure) {
                // It is tried again with the next poll, whatever its own writes have set in motion.
                known.rests_until = Some(Instant::now() + interval);
            }
            let reported = match (outcome, &mut known.reporter) {
                (Some(outcome), Some(reporter)) => reporter.report(&self.agent.broker, outcome).await,
                (None, _) | (_, None) => Ok(()),
            };
            if let Err(error) = reported {
                tracing::warn!("{error}");
            }
        }
        (object.stack_id, known)
    }
}

impl Known {
    /// What to say of a pass that was carried out; nothing while what it deleted is on its way out.
    fn outcome(&mut self, passed: Passed) -> Option<Outcome> {
        if passed.leaving.is_empty() {
            self.waits = 0;
            return Some(Outcome::success());
        }
        self.waits += 1;
        let keys: Vec<String> = passed.leaving.iter().map(ToString::to_string).collect();
        let is_long = self.waits >= SILENT_WAITS;
        is_long.then(|| Outcome::failure(format!("being deleted, and still not gone: {}", keys.join(", "))))
    }

    /// What comes back again and again is put right ever more slowly, down to the pace of the polls.
    fn carried_out(&mut self, why: Why, passed: &Passed, interval: Duration) {
        match (why, passed.writes > 0) {
            (Why::Seen, true) => {
                let rest = (REST_FIRST * (1 << self.corrections.min(10))).min(interval);
                self.rests_until = Some(Instant::now() + rest);
                self.corrections += 1;
            }
            (Why::Poll | Why::Changed, false) => self.corrections = 0,
            (Why::Seen, false) | (Why::Poll | Why::Changed, true) => {}
        }
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
