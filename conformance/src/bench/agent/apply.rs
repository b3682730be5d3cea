//! A large stack that is applied for the first time, over a bare client that does the same: a dry run of each object, then
//! an apply of each, as many at once as the agent has. Its objects carry no marks: those are the agent's own.

use std::time::Duration;

use sindri_figures::{Bar, Sheet, median};
use tokio::time::{Instant, sleep};

use super::ground::Place;
use super::hands::{self, Hands, all};
use super::objects::{NAMESPACE, bundle, config_map, config_map_path, namespace, namespace_path};

const OBJECTS: usize = 1_000;
/// As many as the agent has under way.
const AT_ONCE: usize = 8;
/// Pairs whose median counts.
const ROUNDS: usize = 3;
/// So that nobody is measured while the agent still looks at what it has done.
const SETTLE: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_secs(30);
const MEASURE_MAX: Duration = Duration::from_secs(600);
const RATIO_BAR: Bar = Bar::AtMost(1.3);

/// Measures a first apply.
pub fn measure(place: &Place<'_>, sheet: &mut Sheet) -> Result<(), String> {
    let ground = place.start(INTERVAL)?;
    let rounds = ground.drive(MEASURE_MAX, async |hands: &Hands| {
        hands::apply(&hands.cluster, &namespace_path(NAMESPACE), "", &namespace(NAMESPACE)).await?;
        // Whoever is asked first warms the server for the other.
        bare(hands, "warm").await?;
        let mut rounds = Vec::with_capacity(ROUNDS);
        for round in 0..ROUNDS {
            sleep(SETTLE).await;
            let bare = bare(hands, &format!("bare-{round}")).await?;
            rounds.push((bare, by_agent(hands, &format!("apply-{round}")).await?));
        }
        Ok(rounds)
    })?;
    let times = |of: fn(&(Duration, Duration)) -> Duration| {
        median(rounds.iter().map(|round| of(round).as_secs_f64()).collect())
    };
    let name = |what: &str| place.figure(&format!("{OBJECTS} objects applied, {what}"));
    sheet.add(&name("a bare client"), times(|round| round.0), "s", Bar::None);
    sheet.add(&name("the agent"), times(|round| round.1), "s", Bar::None);
    let ratios = rounds.iter().map(|(bare, agent)| agent.as_secs_f64() / bare.as_secs_f64()).collect();
    sheet.add(&name("over the bare client"), median(ratios), "ratio", RATIO_BAR);
    Ok(())
}

async fn bare(hands: &Hands, prefix: &str) -> Result<Duration, String> {
    let began = Instant::now();
    for query in ["&dryRun=All", ""] {
        let applying = (0..OBJECTS).map(|number| async move {
            let name = format!("{prefix}-{number}");
            let object = config_map(NAMESPACE, &name, "one");
            hands::apply(&hands.cluster, &config_map_path(NAMESPACE, &name), query, &object).await
        });
        all(AT_ONCE, applying).await?;
    }
    Ok(began.elapsed())
}

/// From when the broker has the revision until it knows that it is applied.
async fn by_agent(hands: &Hands, stack: &str) -> Result<Duration, String> {
    let (_, revision) = hands.declare(stack, &bundle(stack, OBJECTS, "one")).await?;
    hands.time_to_apply(revision).await
}
