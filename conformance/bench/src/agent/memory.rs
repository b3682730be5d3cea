//! Memory of the agent with managed objects only, and with many unrelated objects in the cluster.

use std::time::Duration;

use tokio::time::Instant;

use super::clients::{self, Clients, create, run_all};
use super::environment::{Environment, Setup};
use super::objects::{NAMESPACE, bundle, config_map, config_map_collection, config_maps, namespace, namespace_path};
use crate::figures::{Bar, Figures, median};

const MANAGED: usize = 1_000;
/// Number of unrelated objects, and the number on a slow cluster.
const UNRELATED: usize = 50_000;
const UNRELATED_ON_SLOW: usize = 10_000;
/// A cluster is slow if all unrelated objects would take longer than this, extrapolated from the first of them.
const CREATE_MAX: Duration = Duration::from_secs(180);
const SAMPLE: usize = 2_000;
const NAMESPACES: usize = 50;
const CONCURRENCY: usize = 16;
const INTERVAL: Duration = Duration::from_secs(5);
/// Polls before memory is read.
const SETTLE_POLLS: u64 = 3;
const STARTS: usize = 3;
const MEASURE_MAX: Duration = Duration::from_secs(900);
const MEMORY_BAR: Bar = Bar::AtMost(60.0);
const GROWTH_BAR: Bar = Bar::AtMost(1.1);

/// Measures the memory of the agent.
pub fn measure(setup: &Setup<'_>, figures: &mut Figures) -> Result<(), String> {
    let mut environment = setup.start(INTERVAL)?;
    environment.run(MEASURE_MAX, declare_stack)?;
    let applied = idle_memory(&environment)?;
    let alone = memory_after_restart(&mut environment)?;
    let unrelated = environment.run(MEASURE_MAX, create_unrelated)?;
    let beside = idle_memory(&environment)?;
    let among = memory_after_restart(&mut environment)?;
    let name = |what: &str| setup.figure_name(&format!("{MANAGED} managed, {what}"));
    let others = |what: &str| name(&format!("{unrelated} of others {what}"));
    figures.add(&name("memory after they were applied"), applied, "MB", MEMORY_BAR);
    figures.add(&name("memory after a start"), alone, "MB", Bar::None);
    figures.add(&others("made later, memory"), beside, "MB", MEMORY_BAR);
    figures.add(&others("made later, growth"), beside / alone, "ratio", GROWTH_BAR);
    figures.add(&others("there first, memory"), among, "MB", MEMORY_BAR);
    figures.add(&others("there first, growth"), among / alone, "ratio", GROWTH_BAR);
    Ok(())
}

/// Memory after a restart: the median of several, which differ by a tenth.
fn memory_after_restart(environment: &mut Environment) -> Result<f64, String> {
    let mut measured = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        environment.restart_agent()?;
        measured.push(idle_memory(environment)?);
    }
    Ok(median(measured))
}

/// Resident memory in megabytes after some idle polls.
fn idle_memory(environment: &Environment) -> Result<f64, String> {
    environment.run(MEASURE_MAX, async |clients: &Clients| clients.wait_for_idle_polls(SETTLE_POLLS).await)?;
    environment.agent_memory()
}

async fn declare_stack(clients: &Clients) -> Result<(), String> {
    clients::apply(&clients.cluster, &namespace_path(NAMESPACE), "", &namespace(NAMESPACE)).await?;
    let (_, revision) = clients.declare("managed", &bundle(&config_maps("managed", MANAGED, "one"))).await?;
    clients.wait_until_applied(&[revision]).await
}

/// Creates objects that belong to no stack, and returns their number.
async fn create_unrelated(clients: &Clients) -> Result<usize, String> {
    for number in 0..NAMESPACES {
        create(&clients.administrator, "/api/v1/namespaces", &namespace(&unrelated_namespace(number))).await?;
    }
    let began = Instant::now();
    create_all(clients, 0..SAMPLE).await?;
    let expected = began.elapsed().mul_f64(UNRELATED as f64 / SAMPLE as f64);
    let count = if expected > CREATE_MAX { UNRELATED_ON_SLOW } else { UNRELATED };
    create_all(clients, SAMPLE..count).await?;
    Ok(count)
}

async fn create_all(clients: &Clients, numbers: std::ops::Range<usize>) -> Result<(), String> {
    let creating = numbers.map(|number| async move {
        let namespace = unrelated_namespace(number % NAMESPACES);
        create(
            &clients.administrator,
            &config_map_collection(&namespace),
            &config_map(&namespace, &format!("other-{number}"), "one"),
        )
        .await
    });
    run_all(CONCURRENCY, creating).await
}

fn unrelated_namespace(number: usize) -> String {
    format!("others-{number}")
}
