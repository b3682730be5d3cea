//! An agent that has nothing to do: what it asks of the cluster and of the broker from one poll to the next.

use std::time::Duration;

use sindri_figures::{Bar, Sheet};
use tokio::time::Instant;

use super::ground::Place;
use super::hands::{Hands, apply};
use super::objects::{NAMESPACE, bundle, namespace, namespace_path, parts};
use crate::counts::Counts;

const STACKS: usize = 100;
const OBJECTS: usize = 20;
const INTERVAL: Duration = Duration::from_secs(5);
/// Polls until it has settled, and while it is counted.
const SETTLE_POLLS: u64 = 2;
const COUNTED_POLLS: u64 = 12;
const MEASURE_MAX: Duration = Duration::from_secs(400);

/// What happened between two polls, the second so much later.
struct Span {
    took: Duration,
    agent: Counts,
    broker: Counts,
}

/// Measures an idle agent.
pub fn measure(place: &Place<'_>, sheet: &mut Sheet) -> Result<(), String> {
    let ground = place.start(INTERVAL)?;
    let span = ground.drive(MEASURE_MAX, async |hands: &Hands| {
        declare(hands).await?;
        hands.until_polled(SETTLE_POLLS).await?;
        count(hands).await
    })?;
    let intervals = (span.took.as_secs_f64() / INTERVAL.as_secs_f64()).round();
    let per_interval = |count: u64| count as f64 / intervals;
    let name = |what: &str| place.figure(&format!("idle, {STACKS} stacks of {OBJECTS}, {what}"));
    let (agent, broker) = (&span.agent, &span.broker);
    sheet.add(&name("writes"), per_interval(agent.writes_within(span.took)), "per poll", Bar::AtMost(0.0));
    sheet.add(&name("calls"), per_interval(agent.calls()), "per poll", Bar::AtMost(2.0));
    sheet.add(&name("target states"), per_interval(broker.target_states()), "per poll", Bar::AtMost(1.0));
    let others = broker.target_states().saturating_sub(broker.unchanged_target_states());
    sheet.add(&name("other than 304"), per_interval(others), "per poll", Bar::AtMost(0.0));
    Ok(())
}

async fn declare(hands: &Hands) -> Result<(), String> {
    apply(&hands.cluster, &namespace_path(NAMESPACE), "", &namespace(NAMESPACE)).await?;
    let mut revisions = Vec::with_capacity(STACKS);
    for number in 0..STACKS {
        let stack = format!("idle-{number}");
        revisions.push(hands.declare(&stack, &bundle(&parts(&stack, OBJECTS, "one"))).await?.1);
    }
    hands.until_applied(&revisions).await
}

/// Counts from just after one poll to just after a later one, so that every interval is a whole one.
async fn count(hands: &Hands) -> Result<Span, String> {
    let first = hands.until_polled(1).await?;
    let (began, before) = (Instant::now(), hands.broker_counts().await?);
    let last = hands.until_polled(COUNTED_POLLS).await?;
    let took = began.elapsed();
    Ok(Span { took, agent: last.since(&first), broker: hands.broker_counts().await?.since(&before) })
}
