//! Takes the stacks that are due, in the order of their sequences, and runs a pass of each.
//!
//! A pass begins when the one before it has ended or its turn is over. So the order is kept while everything works, and
//! failing stacks cannot delay the others for long.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use sindri_model::StackId;
use sindri_traces::{SPANS, run_in_request};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::reconciler::{Reconciler, TURN_MAX};
use super::state::ReconcileState;
use crate::pass_queue::{PassQueue, Reason};
use crate::target::instruction::Instruction;
use crate::target::revision::Revision;

/// Turn of a revision whose last pass failed after its full TURN_MAX: enough for most passes if it works again.
const TURN_STUCK_MAX: Duration = Duration::from_millis(200);

/// Schedules the passes of one agent.
pub struct Worker<'a> {
    /// Runs the passes.
    pub reconciler: Reconciler<'a>,
    /// Stacks that are due.
    pub queue: &'a PassQueue,
}

/// A pass that has not ended.
struct RunningPass<'a> {
    instruction: Instruction<'a>,
    superseded: CancellationToken,
}

/// Next stack that is due.
enum NextPass {
    Now(Arc<Revision>),
    /// The stack is paused until then.
    At(Instant),
}

impl Worker<'_> {
    /// Runs passes until shutdown, and then until the running ones have ended.
    pub async fn run(&self) {
        let mut idle: BTreeMap<StackId, ReconcileState> = BTreeMap::new();
        let mut running = FuturesUnordered::new();
        let mut busy: BTreeMap<StackId, RunningPass<'_>> = BTreeMap::new();
        let mut turn: Option<(StackId, Instant)> = None;
        let shutdown = self.reconciler.cluster.shutdown();
        let passes_max = self.reconciler.cluster.limits().passes;
        while !(shutdown.is_cancelled() && running.is_empty()) {
            turn = turn.filter(|(stack, until)| busy.contains_key(stack) && *until > Instant::now());
            let may_begin = turn.is_none() && running.len() < passes_max && !shutdown.is_cancelled();
            let next = if may_begin { self.find_next(&busy, &idle) } else { None };
            let wakes_at = match next {
                Some(NextPass::Now(revision)) => {
                    let stack = revision.stack_id;
                    let state = idle.remove(&stack).unwrap_or_default();
                    self.queue.begin_pass(stack);
                    let superseded = CancellationToken::new();
                    let instruction = Instruction::new(self.reconciler.target, &revision);
                    busy.insert(stack, RunningPass { instruction, superseded: superseded.clone() });
                    let longest = if state.stuck == Some(revision.id) { TURN_STUCK_MAX } else { TURN_MAX };
                    turn = Some((stack, Instant::now() + longest));
                    let request = revision.request().filter(|_| !state.has_applied(revision.id)).cloned();
                    let span = create_span(&revision);
                    let pass = self.reconciler.reconcile(revision, state, superseded);
                    running.push(run_in_request(request, span, pass));
                    continue;
                }
                Some(NextPass::At(time)) => Some(time),
                None => turn.map(|(_, until)| until),
            };
            tokio::select! {
                biased; // ended passes first: they make room for others
                Some((stack, state)) = running.next() => {
                    busy.remove(&stack);
                    if state.is_due {
                        self.queue.request(stack, Reason::TargetChanged);
                    }
                    if state.has_become_ready {
                        self.request_dependents(stack);
                    }
                    idle.insert(stack, state);
                    self.forget_removed_stacks(&mut idle);
                    self.request_waiting_for_claims(&mut idle);
                }
                () = self.queue.wait_for_request() => {
                    interrupt_passes(&busy);
                    self.forget_removed_stacks(&mut idle);
                    self.request_waiting_for_claims(&mut idle);
                }
                () = shutdown.cancelled(), if !shutdown.is_cancelled() => {}
                () = sleep_until_some(wakes_at) => {}
            }
        }
    }

    /// Requests passes of the stacks that depend on a stack.
    fn request_dependents(&self, stack: StackId) {
        let target = self.reconciler.target;
        for revision in target.revisions() {
            if target.dependencies(revision.stack_id).iter().any(|dependency| dependency.stack_id == Some(stack)) {
                self.queue.request(revision.stack_id, Reason::TargetChanged);
            }
        }
    }

    /// Requests passes of the stacks that wait for another stack to declare something else, if the target state has changed.
    fn request_waiting_for_claims(&self, idle: &mut BTreeMap<StackId, ReconcileState>) {
        let claims = self.reconciler.target.claims();
        for (stack, state) in idle {
            if state.claims.take_if(|before| !Arc::ptr_eq(before, &claims)).is_some() {
                self.queue.request(*stack, Reason::TargetChanged);
            }
        }
    }

    /// Returns the first stack that is due and has no running pass.
    fn find_next(
        &self,
        busy: &BTreeMap<StackId, RunningPass<'_>>,
        idle: &BTreeMap<StackId, ReconcileState>,
    ) -> Option<NextPass> {
        let mut earliest: Option<Instant> = None;
        for revision in self.reconciler.target.revisions() {
            let stack = revision.stack_id;
            let Some(reason) = self.queue.reason(stack).filter(|_| !busy.contains_key(&stack)) else {
                continue;
            };
            let paused_until = idle.get(&stack).and_then(|state| state.paused_until);
            match paused_until.filter(|until| reason == Reason::ObjectEvent && *until > Instant::now()) {
                None => return Some(NextPass::Now(revision)),
                Some(until) => earliest = Some(earliest.map_or(until, |earliest| earliest.min(until))),
            }
        }
        earliest.map(NextPass::At)
    }

    /// Forgets stacks that are no longer in the target state.
    fn forget_removed_stacks(&self, idle: &mut BTreeMap<StackId, ReconcileState>) {
        let revisions = self.reconciler.target.revisions();
        let stacks: BTreeSet<StackId> = revisions.iter().map(|revision| revision.stack_id).collect();
        // An inactive agent has no revisions, and keeps its state until it is active again.
        if !stacks.is_empty() {
            idle.retain(|stack, _| stacks.contains(stack));
            self.queue.retain(|stack| stacks.contains(&stack));
            self.reconciler.metrics.retain_stacks(&stacks);
            self.reconciler.ready_stacks.retain(&stacks);
        }
    }
}

/// Ends passes of an inactive agent, those whose revision is not the newest one of its stack any more, and those whose stack
/// has another policy, for example because it was suspended.
fn interrupt_passes(busy: &BTreeMap<StackId, RunningPass<'_>>) {
    busy.values().filter(|pass| !pass.instruction.is_current()).for_each(|pass| pass.superseded.cancel());
}

/// Returns the function that creates the span of a pass. A pass is part of the request that submitted the revision until the
/// revision is applied; later ones correct drift.
fn create_span(revision: &Revision) -> impl FnOnce() -> Span + use<> {
    let (stack, id, sequence) = (revision.stack_id, revision.id, revision.sequence_id);
    move || tracing::trace_span!(target: SPANS, "pass", otel.kind = "consumer", %stack, revision = %id, %sequence)
}

async fn sleep_until_some(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
