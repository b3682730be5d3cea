//! Reaction times: from a submission until the object is changed in the cluster, and from a deletion by another client until
//! the object exists again.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::clients::{self, Clients, read};
use super::environment::Setup;
use super::objects::{NAMESPACE, bundle, config_map_path, config_maps, namespace, namespace_path};
use crate::figures::{Bar, Figures, median};

const REPETITIONS: usize = 15;
/// The agent's default: no reaction may wait for a poll.
const INTERVAL: Duration = Duration::from_secs(30);
/// Time between two reads of the object: short compared with the bars, and a small load for the cluster.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// Longer than the polling interval, so that a reaction that comes only with the next poll is measured and misses its bar.
const REACTION_MAX: Duration = Duration::from_secs(60);
/// Pause between two repetitions, so that none overlaps with work of the last one.
const PAUSE: Duration = Duration::from_millis(500);
const MEASURE_MAX: Duration = Duration::from_secs(600);
const CHANGED_BAR: Bar = Bar::AtMost(300.0);
const DELETED_BAR: Bar = Bar::AtMost(1000.0);

/// Measures reaction times.
pub fn measure(setup: &Setup<'_>, figures: &mut Figures) -> Result<(), String> {
    let environment = setup.start(INTERVAL)?;
    let (changes, deletions) = environment.run(MEASURE_MAX, async |clients: &Clients| {
        clients::apply(&clients.cluster, &namespace_path(NAMESPACE), "", &namespace(NAMESPACE)).await?;
        // The delay of a watch event is that of the server, so only a real one is measured.
        let deletions = if setup.is_real() { Some(deletions(clients).await?) } else { None };
        Ok((changes(clients).await?, deletions))
    })?;
    let name = setup.figure_name("changed at the broker, in the cluster after");
    figures.add(&name, median(changes), "ms", CHANGED_BAR);
    if let Some(deletions) = deletions {
        figures.add(&setup.figure_name("deleted by hand, back after"), median(deletions), "ms", DELETED_BAR);
    }
    Ok(())
}

async fn changes(clients: &Clients) -> Result<Vec<f64>, String> {
    let (stack, revision) = clients.declare("change", &bundle(&config_maps("change", 1, "first"))).await?;
    clients.wait_until_applied(&[revision]).await?;
    let path = config_map_path(NAMESPACE, "change-0");
    let mut took = Vec::with_capacity(REPETITIONS);
    for time in 0..REPETITIONS {
        sleep(PAUSE).await;
        let content = format!("content-{time}");
        let began = Instant::now();
        let revision = clients.submit(stack, &bundle(&config_maps("change", 1, &content))).await?;
        let is_changed = |read: Option<&Value>| read.is_some_and(|read| read["data"]["content"] == content.as_str());
        wait_until(clients, &path, is_changed).await?;
        took.push(began.elapsed().as_secs_f64() * 1000.0);
        clients.wait_until_applied(&[revision]).await?;
    }
    Ok(took)
}

/// Deletes objects of different stacks: the agent restores an object that is deleted repeatedly with growing backoff.
async fn deletions(clients: &Clients) -> Result<Vec<f64>, String> {
    let mut revisions = Vec::with_capacity(REPETITIONS);
    for time in 0..REPETITIONS {
        let stack = format!("deleted-{time}");
        revisions.push(clients.declare(&stack, &bundle(&config_maps(&stack, 1, "first"))).await?.1);
    }
    clients.wait_until_applied(&revisions).await?;
    let mut took = Vec::with_capacity(REPETITIONS);
    for time in 0..REPETITIONS {
        sleep(PAUSE).await;
        let path = config_map_path(NAMESPACE, &format!("deleted-{time}-0"));
        let before = read(&clients.administrator, &path).await?.ok_or_else(|| format!("{path} is not there"))?;
        let began = Instant::now();
        clients::delete(&clients.administrator, &path).await?;
        let is_recreated =
            |read: Option<&Value>| read.is_some_and(|read| read["metadata"]["uid"] != before["metadata"]["uid"]);
        wait_until(clients, &path, is_recreated).await?;
        took.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(took)
}

async fn wait_until(clients: &Clients, path: &str, holds: impl Fn(Option<&Value>) -> bool) -> Result<(), String> {
    let began = Instant::now();
    while !holds(read(&clients.administrator, path).await?.as_ref()) {
        if began.elapsed() > REACTION_MAX {
            return Err(format!("{path} did not reach the expected state within {REACTION_MAX:?}"));
        }
        sleep(CHECK_INTERVAL).await;
    }
    Ok(())
}
