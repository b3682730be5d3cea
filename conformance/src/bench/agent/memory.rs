//! What an agent costs, and that it does not pay for what is not its own: its memory before and after someone else fills the
//! cluster.

use std::time::Duration;

use sindri_figures::{Bar, Sheet, median};
use tokio::time::Instant;

use super::ground::{Ground, Place};
use super::hands::{self, Hands, all, create};
use super::objects::{NAMESPACE, bundle, config_map, config_maps, namespace, namespace_path, parts};

const MANAGED: usize = 1_000;
/// What someone else has: so many, or fewer where the cluster is slow.
const UNRELATED: usize = 50_000;
const UNRELATED_WHERE_SLOW: usize = 10_000;
/// Slow is a cluster that would need longer than this for all of them, judged by the first of them.
const CREATE_MAX: Duration = Duration::from_secs(180);
const JUDGED_BY: usize = 2_000;
const NAMESPACES: usize = 50;
const AT_ONCE: usize = 16;
const INTERVAL: Duration = Duration::from_secs(5);
/// Polls until its memory is read.
const SETTLE_POLLS: u64 = 3;
const STARTS: usize = 3;
const MEASURE_MAX: Duration = Duration::from_secs(900);
const MEMORY_BAR: Bar = Bar::AtMost(60.0);
const GROWTH_BAR: Bar = Bar::AtMost(1.1);

/// Measures memory.
pub fn measure(place: &Place<'_>, sheet: &mut Sheet) -> Result<(), String> {
    let mut ground = place.start(INTERVAL)?;
    ground.drive(MEASURE_MAX, declare)?;
    let applied = settled(&ground)?;
    let alone = started(&mut ground)?;
    let unrelated = ground.drive(MEASURE_MAX, fill)?;
    let beside = settled(&ground)?;
    let among = started(&mut ground)?;
    let name = |what: &str| place.figure(&format!("{MANAGED} managed, {what}"));
    let others = |what: &str| name(&format!("{unrelated} of others {what}"));
    sheet.add(&name("memory after they were applied"), applied, "MB", MEMORY_BAR);
    sheet.add(&name("memory after a start"), alone, "MB", Bar::None);
    sheet.add(&others("made later, memory"), beside, "MB", MEMORY_BAR);
    sheet.add(&others("made later, growth"), beside / alone, "ratio", GROWTH_BAR);
    sheet.add(&others("there first, memory"), among, "MB", MEMORY_BAR);
    sheet.add(&others("there first, growth"), among / alone, "ratio", GROWTH_BAR);
    Ok(())
}

/// The memory of a process that has just found out everything: the median of several, which differ by a tenth.
fn started(ground: &mut Ground) -> Result<f64, String> {
    let mut measured = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        ground.start_agent_anew()?;
        measured.push(settled(ground)?);
    }
    Ok(median(measured))
}

/// Resident memory in megabytes, once nothing is under way.
fn settled(ground: &Ground) -> Result<f64, String> {
    ground.drive(MEASURE_MAX, async |hands: &Hands| hands.until_polled(SETTLE_POLLS).await)?;
    ground.memory()
}

async fn declare(hands: &Hands) -> Result<(), String> {
    hands::apply(&hands.cluster, &namespace_path(NAMESPACE), "", &namespace(NAMESPACE)).await?;
    let (_, revision) = hands.declare("managed", &bundle(&parts("managed", MANAGED, "one"))).await?;
    hands.until_applied(&[revision]).await
}

/// Makes what someone else has, and says how much that is.
async fn fill(hands: &Hands) -> Result<usize, String> {
    for number in 0..NAMESPACES {
        create(&hands.someone, "/api/v1/namespaces", &namespace(&place_of(number))).await?;
    }
    let began = Instant::now();
    create_all(hands, 0..JUDGED_BY).await?;
    let expected = began.elapsed().mul_f64(UNRELATED as f64 / JUDGED_BY as f64);
    let count = if expected > CREATE_MAX { UNRELATED_WHERE_SLOW } else { UNRELATED };
    create_all(hands, JUDGED_BY..count).await?;
    Ok(count)
}

async fn create_all(hands: &Hands, numbers: std::ops::Range<usize>) -> Result<(), String> {
    let creating = numbers.map(|number| async move {
        let place = place_of(number % NAMESPACES);
        create(&hands.someone, &config_maps(&place), &config_map(&place, &format!("other-{number}"), "one")).await
    });
    all(AT_ONCE, creating).await
}

fn place_of(number: usize) -> String {
    format!("others-{number}")
}
