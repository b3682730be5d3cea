//! Takes the stacks that are due, in the order of their sequences, and makes a pass of each.
//!
//! A pass begins when the one before it has ended, or has taken so long that the others shall not wait for it any more:
//! so the order is kept where everything works, and stacks that do not work cannot hold up the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use sindri_model::{AgentId, StackId};
use tokio::time::{Instant, sleep_until};

use crate::agent::Agent;
use crate::cluster::reflector::Watches;
use crate::pass_queue::{Queue, Why};
use crate::stack::outcome::Recorded;
use crate::stack::reconcile::Known;
use crate::target::poller::Target;
use crate::target::revision::Revision;

/// How long the others wait for one pass.
pub(crate) const TURN_MAX: Duration = Duration::from_secs(2);
/// The same if they waited so long for the last one, and in vain: if it works again, this is enough for most.
const TURN_STUCK_MAX: Duration = Duration::from_millis(200);
/// The most passes at once. Most of so many only wait until they may try something again.
const PASSES_MAX: usize = 256;
/// Makes the passes.
pub(crate) struct Worker<'a> {
    pub agent: &'a Agent,
    pub id: AgentId,
    pub target: &'a Target,
    pub queue: &'a Queue,
    pub watches: &'a Watches,
    pub recorded: Recorded,
}

/// A stack that is due.
enum Due {
    Now(Arc<Revision>),
    /// Not yet.
    At(Instant),
}

impl Worker<'_> {
    /// Until the agent is to end, and the passes that are under way have ended.
    pub(crate) async fn work(&self) {
        let mut idle: BTreeMap<StackId, Known> = BTreeMap::new();
        let (mut running, mut busy) = (FuturesUnordered::new(), BTreeSet::new());
        let mut turn: Option<(StackId, Instant)> = None;
        let stop = &self.agent.cluster.stop;
        while !(stop.is_asked() && running.is_empty()) {
            turn = turn.filter(|(stack, until)| busy.contains(stack) && *until > Instant::now());
            let may_begin = turn.is_none() && running.len() < PASSES_MAX && !stop.is_asked();
            let next = if may_begin { self.next(&busy, &idle) } else { None };
            let wakes_at = match next {
                Some(Due::Now(object)) => {
                    let stack = object.stack_id;
                    let known = idle.remove(&stack).unwrap_or_default();
                    self.queue.begin(stack);
                    busy.insert(stack);
                    let longest = if known.stuck == Some(object.id) { TURN_STUCK_MAX } else { TURN_MAX };
                    turn = Some((stack, Instant::now() + longest));
                    running.push(self.round(object, known));
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
                () = stop.asked(), if !stop.is_asked() => {}
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
                None => return Some(Due::Now(object)),
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
            self.agent.metrics.keep(&wanted);
        }
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
