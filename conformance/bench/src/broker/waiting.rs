//! Ten thousand agents with a long poll: memory of the broker, and the time until the agent concerned by a change has its response.

use std::borrow::Cow;
use std::time::Duration;

use super::http_load::{LoadGenerator, get, post};
use super::polls::LargeBroker;
use super::prepare::{RegisteredAgent, target_request};
use super::server::Bench;
use crate::clock::now;
use crate::figures::{Bar, Figures, median};

const CHANGES: usize = 50;
/// Wait that each long poll asks for.
const WAIT_SECONDS: u64 = 60;
/// All changes must be made before the long polls end.
const CHANGES_MAX: Duration = Duration::from_secs(50);
/// Wait that the probe asks for, and the time in which a broker without long polls responds.
const PROBE_SECONDS: u64 = 2;
const IMMEDIATE: Duration = Duration::from_millis(1000);
/// Time after which a change counts as lost.
const WAKE_MAX: Duration = Duration::from_secs(5);
/// Time in which responses to other agents are counted after each change.
const OTHERS_MAX: Duration = Duration::from_millis(20);
const SETTLE: Duration = Duration::from_millis(1000);
const MEMORY_BAR: Bar = Bar::AtMost(250.0);
const WAKE_BAR: Bar = Bar::AtMost(50.0);

/// Measures agents that wait in long polls.
pub fn measure(bench: &Bench, large: &LargeBroker, figures: &mut Figures) -> Result<(), String> {
    probe(large)?;
    let before = large.server.resident()?;
    let mut waiting = LoadGenerator::connect(large.server.address, large.agents.len())?;
    let etags = read_etags(&mut waiting, &large.agents)?;
    bench.check_interrupt()?;
    let start = now();
    for (number, (agent, etag)) in large.agents.iter().zip(&etags).enumerate() {
        waiting.send(number, &wait_request(agent, etag, WAIT_SECONDS))?;
    }
    let mut others = waiting.wait_for_responses(SETTLE)?.len();
    let memory = large.server.resident()?;
    let mut wakes = Vec::with_capacity(CHANGES);
    let mut admin = LoadGenerator::connect(large.server.address, 1)?;
    for change in 0..CHANGES {
        bench.check_interrupt()?;
        let woken = change * (large.agents.len() / CHANGES);
        let (wake, unconcerned) = wake(large, &mut waiting, &mut admin, woken)?;
        wakes.push(wake.as_secs_f64() * 1000.0);
        others += unconcerned;
    }
    if start.elapsed() > CHANGES_MAX {
        return Err(format!("the changes took {:?}, longer than some long polls", start.elapsed()));
    }
    figures.add("the same broker before any agent waits, memory", before, "MB", Bar::None);
    figures.add(&format!("{} agents wait, memory", large.agents.len()), memory, "MB", MEMORY_BAR);
    figures.add("a change is heard of by the agent that waits", median(wakes), "ms", WAKE_BAR);
    figures.add("others whose request ended", others as f64, "requests", Bar::AtMost(0.0));
    Ok(())
}

/// Checks that the broker supports long polls.
fn probe(large: &LargeBroker) -> Result<(), String> {
    let mut load = LoadGenerator::connect(large.server.address, 1)?;
    let agent = large.agents.first().ok_or("there are no agents")?;
    let etag = read_etags(&mut load, std::slice::from_ref(agent))?.remove(0);
    load.send(0, &wait_request(agent, &etag, PROBE_SECONDS))?;
    match load.wait_for_responses(IMMEDIATE)?.is_empty() {
        true => Ok(()),
        false => Err("the broker responds at once to a long poll (?wait=SECONDS)".to_owned()),
    }
}

/// Reads the ETag of each agent's target state.
fn read_etags(load: &mut LoadGenerator, agents: &[RegisteredAgent]) -> Result<Vec<String>, String> {
    let mut etags = vec![String::new(); agents.len()];
    let mut sent = vec![false; agents.len()];
    let next = |number: usize| {
        let first = !std::mem::replace(&mut sent[number], true);
        first.then(|| Cow::Owned(get(&path(&agents[number]), &agents[number].key, None)))
    };
    load.run(next, |number, response| {
        etags[number] = response.header("etag").ok_or("a target state has no ETag")?.to_owned();
        Ok(())
    })?;
    Ok(etags)
}

/// Makes a change for one agent. Returns the time until its long poll ends, and the number of other agents whose long poll ended.
fn wake(
    large: &LargeBroker,
    waiting: &mut LoadGenerator,
    admin: &mut LoadGenerator,
    woken: usize,
) -> Result<(Duration, usize), String> {
    let (path, body) = target_request(&large.agents[woken].id, &large.stack);
    let start = now();
    admin.send(0, &post(&path, &large.server.key, "application/json", &body))?;
    let mut others = 0;
    let wake = loop {
        let finished = waiting.wait_for_responses(WAKE_MAX)?;
        if finished.is_empty() {
            return Err(format!("the long poll of an agent did not end after a change within {WAKE_MAX:?}"));
        }
        others += finished.iter().filter(|number| **number != woken).count();
        if finished.contains(&woken) {
            break start.elapsed();
        }
    };
    admin.wait_for_responses(WAKE_MAX)?;
    let (changed, polled) =
        (admin.response(0).map(|response| response.status), waiting.response(woken).map(|response| response.status));
    if (changed, polled) != (Some(201), Some(200)) {
        return Err(format!("the change had the response {changed:?}, the long poll {polled:?}"));
    }
    Ok((wake, others + waiting.wait_for_responses(OTHERS_MAX)?.len()))
}

fn path(agent: &RegisteredAgent) -> String {
    format!("/api/v1/agents/{}/target-state", agent.id)
}

fn wait_request(agent: &RegisteredAgent, etag: &str, seconds: u64) -> Vec<u8> {
    get(&format!("{}?wait={seconds}", path(agent)), &agent.key, Some(etag))
}
