//! A stack of which everything has changed: how many calls to the API server that takes.

use std::time::Duration;

use sindri_figures::{Bar, Sheet};
use tokio::time::sleep;

use super::ground::Place;
use super::hands::{Hands, apply};
use super::objects::{NAMESPACE, bundle, namespace, namespace_path, parts};

const OBJECTS: usize = 100;
/// A dry run and an apply of each, and what is needed around them.
const CALLS_MAX: usize = 2 * OBJECTS + 10;
/// As agents have it, so that hardly any poll falls into what is counted.
const INTERVAL: Duration = Duration::from_secs(30);
/// What a change sets in motion besides, such as what the watches see, counts too.
const SETTLE: Duration = Duration::from_secs(2);
const MEASURE_MAX: Duration = Duration::from_secs(120);

/// Measures a change.
pub fn measure(place: &Place<'_>, sheet: &mut Sheet) -> Result<(), String> {
    let ground = place.start(INTERVAL)?;
    let calls = ground.drive(MEASURE_MAX, async |hands: &Hands| {
        apply(&hands.cluster, &namespace_path(NAMESPACE), "", &namespace(NAMESPACE)).await?;
        let (stack, first) = hands.declare("change", &bundle(&parts("change", OBJECTS, "one"))).await?;
        hands.until_applied(&[first]).await?;
        sleep(SETTLE).await;
        let before = hands.counts().await?;
        let second = hands.submit(stack, &bundle(&parts("change", OBJECTS, "two"))).await?;
        hands.until_applied(&[second]).await?;
        sleep(SETTLE).await;
        Ok(hands.counts().await?.since(&before).calls())
    })?;
    let name = place.figure(&format!("a stack of {OBJECTS} changed, calls"));
    sheet.add(&name, calls as f64, "calls", Bar::AtMost(CALLS_MAX as f64));
    Ok(())
}
