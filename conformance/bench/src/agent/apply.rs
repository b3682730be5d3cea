//! First apply of a large stack of application-like objects.
//!
//! On a real control plane the agent is compared with a bare client: it parses the bundle, sends a dry run of each object, then
//! an apply of each, as many at once as the agent does, and deserializes the whole object of each response. It keeps no
//! inventory, watches nothing and adds no labels or annotations. On the simulated API server the calls cost so little that the
//! ratio says nothing about the agent in use, so only the agent's time is reported.

use std::time::Duration;

use sindri_model::Bundle;
use tokio::time::{Instant, sleep};

use super::application;
use super::clients::{self, Clients, run_all, to_message};
use super::environment::Setup;
use super::objects::{NAMESPACE, TestObject, bundle, namespace, namespace_path};
use crate::figures::{Bar, Figures, median};

const OBJECTS: usize = 1_000;
/// Concurrent calls of the bare client: as many as the agent's.
const CONCURRENCY: usize = 8;
/// Even, so that the bare client and the agent are first equally often: the state that one leaves in the server's memory may
/// affect the other.
const ROUNDS: usize = 12;
/// Pause before each measurement, so that watches and caches of the server have caught up.
const SETTLE: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_secs(30);
const MEASURE_MAX: Duration = Duration::from_secs(600);
const RATIO_BAR: Bar = Bar::AtMost(1.3);

/// Measures a first apply.
pub fn measure(setup: &Setup<'_>, figures: &mut Figures) -> Result<(), String> {
    let environment = setup.start(INTERVAL)?;
    let rounds = environment.run(MEASURE_MAX, async |clients: &Clients| {
        for object in application::permissions() {
            clients::apply(&clients.administrator, &object.path, "", &object.manifest).await?;
        }
        clients::apply(&clients.cluster, &namespace_path(NAMESPACE), "", &namespace(NAMESPACE)).await?;
        // The server's authorizer learns of new permissions by a watch.
        sleep(SETTLE).await;
        let mut rounds = Vec::with_capacity(ROUNDS);
        for number in 0..ROUNDS {
            rounds.push(measure_round(clients, number, setup.is_real()).await?);
        }
        Ok(rounds)
    })?;
    let name = |what: &str| setup.figure_name(&format!("{OBJECTS} objects applied, {what}"));
    let agent: Vec<f64> = rounds.iter().map(|round| round.agent).collect();
    let compared: Vec<(f64, &BareSeconds)> =
        rounds.iter().filter_map(|round| Some((round.agent, round.bare.as_ref()?))).collect();
    if compared.is_empty() {
        figures.add(&name("the agent"), median(agent), "s", Bar::None);
        return Ok(());
    }
    let over =
        |seconds: fn(&BareSeconds) -> f64| median(compared.iter().map(|(agent, bare)| agent / seconds(bare)).collect());
    figures.add(&name("a bare client"), median(compared.iter().map(|(_, bare)| bare.all).collect()), "s", Bar::None);
    figures.add(&name("the agent"), median(agent), "s", Bar::None);
    figures.add(&name("over the bare client"), over(|bare| bare.all), "ratio", RATIO_BAR);
    figures.add(&name("over its calls alone"), over(|bare| bare.calls), "ratio", RATIO_BAR);
    Ok(())
}

/// Seconds of one round.
struct ApplyRound {
    agent: f64,
    bare: Option<BareSeconds>,
}

/// Seconds of the bare client.
struct BareSeconds {
    /// With parsing the bundle.
    all: f64,
    /// Only the dry runs and the applies.
    calls: f64,
}

/// Measures the agent, and the bare client too if they are compared.
async fn measure_round(clients: &Clients, number: usize, is_compared: bool) -> Result<ApplyRound, String> {
    // Not counted: it warms the server, so that the first of a round has the same predecessor as the first of any other.
    sleep(SETTLE).await;
    apply_bare(clients, &application::objects(&format!("warm-{number}"), OBJECTS)).await?;
    let mut bare = None;
    if is_compared && number.is_multiple_of(2) {
        bare = Some(measure_bare(clients, number).await?);
    }
    sleep(SETTLE).await;
    let agent = apply_by_agent(clients, &format!("apply-{number}")).await?.as_secs_f64();
    if is_compared && bare.is_none() {
        bare = Some(measure_bare(clients, number).await?);
    }
    Ok(ApplyRound { agent, bare })
}

async fn measure_bare(clients: &Clients, number: usize) -> Result<BareSeconds, String> {
    sleep(SETTLE).await;
    apply_bare(clients, &application::objects(&format!("bare-{number}"), OBJECTS)).await
}

async fn apply_bare(clients: &Clients, objects: &[TestObject]) -> Result<BareSeconds, String> {
    let text = bundle(objects);
    let began = Instant::now();
    let parsed = Bundle::parse(&text).map_err(to_message)?.into_objects();
    let parsing = began.elapsed();
    for query in ["&dryRun=All", ""] {
        let pairs = objects.iter().zip(&parsed);
        let calls =
            pairs.map(|(object, parsed)| clients::apply(&clients.cluster, &object.path, query, &parsed.manifest));
        run_all(CONCURRENCY, calls).await?;
    }
    let all = began.elapsed();
    Ok(BareSeconds { all: all.as_secs_f64(), calls: (all - parsing).as_secs_f64() })
}

/// Measures from when the broker has the revision until it has the agent's outcome. The stack is deleted at the end.
async fn apply_by_agent(clients: &Clients, name: &str) -> Result<Duration, String> {
    let (stack, revision) = clients.declare(name, &bundle(&application::objects(name, OBJECTS))).await?;
    let took = clients.time_to_apply(revision).await?;
    clients.remove(stack).await?;
    Ok(took)
}
