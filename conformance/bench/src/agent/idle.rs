//! An idle agent: its requests to the cluster and to the broker per polling interval.

use std::time::Duration;

use sindri_conformance::metrics::Counters;
use tokio::time::Instant;

use super::clients::{Clients, apply};
use super::environment::Setup;
use super::objects::{NAMESPACE, bundle, config_maps, namespace, namespace_path};
use crate::figures::{Bar, Figures};

const STACKS: usize = 100;
const OBJECTS: usize = 20;
const INTERVAL: Duration = Duration::from_secs(5);
/// Polls until the agent is idle, and polls that are counted.
const SETTLE_POLLS: u64 = 2;
const COUNTED_POLLS: u64 = 12;
const MEASURE_MAX: Duration = Duration::from_secs(400);

/// Counters between two polls.
struct Interval {
    took: Duration,
    agent: Counters,
    broker: Counters,
}

/// Measures an idle agent.
pub fn measure(setup: &Setup<'_>, figures: &mut Figures) -> Result<(), String> {
    let environment = setup.start(INTERVAL)?;
    let Interval { took, agent, broker } = environment.run(MEASURE_MAX, async |clients: &Clients| {
        declare_stacks(clients).await?;
        clients.wait_for_idle_polls(SETTLE_POLLS).await?;
        count(clients).await
    })?;
    let intervals = (took.as_secs_f64() / INTERVAL.as_secs_f64()).round();
    let per_interval = |count: u64| count as f64 / intervals;
    let name = |what: &str| setup.figure_name(&format!("idle, {STACKS} stacks of {OBJECTS}, {what}"));
    figures.add(&name("writes"), per_interval(agent.writes_within(took)), "per poll", Bar::AtMost(0.0));
    figures.add(&name("calls"), per_interval(agent.calls()), "per poll", Bar::AtMost(2.0));
    figures.add(&name("target states"), per_interval(broker.target_states()), "per poll", Bar::AtMost(1.0));
    let others = broker.target_states().saturating_sub(broker.unchanged_target_states());
    figures.add(&name("other than 304"), per_interval(others), "per poll", Bar::AtMost(0.0));
    Ok(())
}

async fn declare_stacks(clients: &Clients) -> Result<(), String> {
    apply(&clients.cluster, &namespace_path(NAMESPACE), "", &namespace(NAMESPACE)).await?;
    let mut revisions = Vec::with_capacity(STACKS);
    for number in 0..STACKS {
        let stack = format!("idle-{number}");
        revisions.push(clients.declare(&stack, &bundle(&config_maps(&stack, OBJECTS, "one"))).await?.1);
    }
    clients.wait_until_applied(&revisions).await
}

/// Counts from just after one poll to just after a later one, so that only whole intervals are counted.
async fn count(clients: &Clients) -> Result<Interval, String> {
    let first = clients.wait_for_idle_polls(1).await?;
    let (began, before) = (Instant::now(), clients.broker_counts().await?);
    let last = clients.wait_for_idle_polls(COUNTED_POLLS).await?;
    let took = began.elapsed();
    Ok(Interval { took, agent: last.since(&first), broker: clients.broker_counts().await?.since(&before) })
}
