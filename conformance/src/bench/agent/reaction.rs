//! How soon something happens: a change at the broker is in the cluster, and what someone deleted by hand is back.

use std::time::Duration;

use serde_json::Value;
use sindri_cluster::{Provider, ProviderName};
use sindri_figures::{Bar, Sheet, median};
use tokio::time::{Instant, sleep};

use super::ground::Place;
use super::hands::{self, Hands, read};
use super::objects::{NAMESPACE, bundle, config_map_path, namespace, namespace_path, parts};

const TIMES: usize = 15;
/// As agents have it: nothing here may wait for a poll.
const INTERVAL: Duration = Duration::from_secs(30);
/// How often the cluster is looked at: fine enough for the bars, and little beside what it does.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Longer than any that counts: what comes only with the next poll falls short, and is measured.
const BACK_MAX: Duration = Duration::from_secs(60);
/// Between two, so that none meets what the last one set in motion.
const PAUSE: Duration = Duration::from_millis(500);
const MEASURE_MAX: Duration = Duration::from_secs(600);
const CHANGED_BAR: Bar = Bar::AtMost(300.0);
const DELETED_BAR: Bar = Bar::AtMost(1000.0);

/// Measures reactions.
pub fn measure(place: &Place<'_>, sheet: &mut Sheet) -> Result<(), String> {
    let ground = place.start(INTERVAL)?;
    // Whether a hand's deletion comes as fast as a real server tells it, only a real server says.
    let is_real = Provider::name(place.provider) != ProviderName::Sim;
    let (changes, deletions) = ground.drive(MEASURE_MAX, async |hands: &Hands| {
        hands::apply(&hands.cluster, &namespace_path(NAMESPACE), "", &namespace(NAMESPACE)).await?;
        let deletions = if is_real { Some(deletions(hands).await?) } else { None };
        Ok((changes(hands).await?, deletions))
    })?;
    let name = place.figure("changed at the broker, in the cluster after");
    sheet.add(&name, median(changes), "ms", CHANGED_BAR);
    if let Some(deletions) = deletions {
        sheet.add(&place.figure("deleted by hand, back after"), median(deletions), "ms", DELETED_BAR);
    }
    Ok(())
}

async fn changes(hands: &Hands) -> Result<Vec<f64>, String> {
    let (stack, revision) = hands.declare("change", &bundle(&parts("change", 1, "first"))).await?;
    hands.until_applied(&[revision]).await?;
    let path = config_map_path(NAMESPACE, "change-0");
    let mut took = Vec::with_capacity(TIMES);
    for time in 0..TIMES {
        sleep(PAUSE).await;
        let content = format!("content-{time}");
        let began = Instant::now();
        let revision = hands.submit(stack, &bundle(&parts("change", 1, &content))).await?;
        let is_there = |found: Option<&Value>| found.is_some_and(|found| found["data"]["content"] == content.as_str());
        until(hands, &path, is_there).await?;
        took.push(began.elapsed().as_secs_f64() * 1000.0);
        hands.until_applied(&[revision]).await?;
    }
    Ok(took)
}

/// Of one stack each: what is deleted again and again is put right ever more slowly, on purpose.
async fn deletions(hands: &Hands) -> Result<Vec<f64>, String> {
    let mut revisions = Vec::with_capacity(TIMES);
    for time in 0..TIMES {
        let stack = format!("deleted-{time}");
        revisions.push(hands.declare(&stack, &bundle(&parts(&stack, 1, "first"))).await?.1);
    }
    hands.until_applied(&revisions).await?;
    let mut took = Vec::with_capacity(TIMES);
    for time in 0..TIMES {
        sleep(PAUSE).await;
        let path = config_map_path(NAMESPACE, &format!("deleted-{time}-0"));
        let before = read(&hands.someone, &path).await?.ok_or_else(|| format!("{path} is not there"))?;
        let began = Instant::now();
        hands::delete(&hands.someone, &path).await?;
        let is_back =
            |found: Option<&Value>| found.is_some_and(|found| found["metadata"]["uid"] != before["metadata"]["uid"]);
        until(hands, &path, is_back).await?;
        took.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(took)
}

async fn until(hands: &Hands, path: &str, holds: impl Fn(Option<&Value>) -> bool) -> Result<(), String> {
    let began = Instant::now();
    while !holds(read(&hands.someone, path).await?.as_ref()) {
        if began.elapsed() > BACK_MAX {
            return Err(format!("{path} is not as it should be after {BACK_MAX:?}"));
        }
        sleep(LOOK_EVERY).await;
    }
    Ok(())
}
