//! Ten thousand agents that wait for a change: what they cost, and how fast the one that a change concerns hears of it.

use std::borrow::Cow;
use std::time::Duration;

use sindri_figures::{Bar, Sheet, median};

use super::load::{Load, get, now, post};
use super::polls::Large;
use super::prepare::{Agent, target_request};
use super::server::Bench;

const CHANGES: usize = 50;
/// How long each request asks to wait.
const WAIT_SECONDS: u64 = 60;
/// All changes must be made while everyone still waits.
const CHANGES_MAX: Duration = Duration::from_secs(50);
/// What a probe asks to wait, and how soon a broker that ignores it would answer.
const PROBE_SECONDS: u64 = 2;
const IGNORED_WITHIN: Duration = Duration::from_millis(1000);
/// How long a change may take to be heard of before it counts as lost.
const WAKE_MAX: Duration = Duration::from_secs(5);
/// How long others are watched after each change.
const WATCH: Duration = Duration::from_millis(20);
const SETTLE: Duration = Duration::from_millis(1000);
const MEMORY_BAR: Bar = Bar::AtMost(250.0);
const WAKE_BAR: Bar = Bar::AtMost(50.0);

/// Measures waiting agents.
pub fn measure(bench: &Bench, large: &Large, sheet: &mut Sheet) -> Result<(), String> {
    probe(large)?;
    let before = large.server.resident()?;
    let mut waiting = Load::connect(large.server.address, large.agents.len())?;
    let etags = ask_all(&mut waiting, &large.agents)?;
    bench.go_on()?;
    let start = now();
    for (number, (agent, etag)) in large.agents.iter().zip(&etags).enumerate() {
        waiting.send(number, &wait_request(agent, etag, WAIT_SECONDS))?;
    }
    let mut others = waiting.finished(SETTLE)?.len();
    let memory = large.server.resident()?;
    let mut wakes = Vec::with_capacity(CHANGES);
    let mut admin = Load::connect(large.server.address, 1)?;
    for change in 0..CHANGES {
        bench.go_on()?;
        let woken = change * (large.agents.len() / CHANGES);
        let (wake, strangers) = wake(large, &mut waiting, &mut admin, woken)?;
        wakes.push(wake.as_secs_f64() * 1000.0);
        others += strangers;
    }
    if start.elapsed() > CHANGES_MAX {
        return Err(format!("the changes took {:?}, so that some no longer waited", start.elapsed()));
    }
    sheet.add("the same broker before anyone waits, memory", before, "MB", Bar::None);
    sheet.add(&format!("{} agents wait, memory", large.agents.len()), memory, "MB", MEMORY_BAR);
    sheet.add("a change is heard of by the agent that waits", median(wakes), "ms", WAKE_BAR);
    sheet.add("others whose request ended", others as f64, "requests", Bar::AtMost(0.0));
    Ok(())
}

/// Sees that the broker holds requests at all.
fn probe(large: &Large) -> Result<(), String> {
    let mut load = Load::connect(large.server.address, 1)?;
    let agent = large.agents.first().ok_or("there are no agents")?;
    let etag = ask_all(&mut load, std::slice::from_ref(agent))?.remove(0);
    load.send(0, &wait_request(agent, &etag, PROBE_SECONDS))?;
    match load.finished(IGNORED_WITHIN)?.is_empty() {
        true => Ok(()),
        false => Err("the broker answers at once when it is asked to wait (?wait=SECONDS)".to_owned()),
    }
}

/// What each agent knows: its ETag.
fn ask_all(load: &mut Load, agents: &[Agent]) -> Result<Vec<String>, String> {
    let mut etags = vec![String::new(); agents.len()];
    let mut asked = vec![false; agents.len()];
    let next = |number: usize| {
        let first = !std::mem::replace(&mut asked[number], true);
        first.then(|| Cow::Owned(get(&path(&agents[number]), &agents[number].key, None)))
    };
    load.drive(next, |number, answer| {
        etags[number] = answer.header("etag").ok_or("a target state has no ETag")?.to_owned();
        Ok(())
    })?;
    Ok(etags)
}

/// Makes a change for one agent: how long until it hears of it, and how many others were woken.
fn wake(large: &Large, waiting: &mut Load, admin: &mut Load, woken: usize) -> Result<(Duration, usize), String> {
    let (path, body) = target_request(&large.agents[woken].id, &large.stack);
    let start = now();
    admin.send(0, &post(&path, &large.server.key, "application/json", &body))?;
    let mut strangers = 0;
    let wake = loop {
        let finished = waiting.finished(WAKE_MAX)?;
        if finished.is_empty() {
            return Err(format!("an agent that waits did not hear of a change within {WAKE_MAX:?}"));
        }
        strangers += finished.iter().filter(|number| **number != woken).count();
        if finished.contains(&woken) {
            break start.elapsed();
        }
    };
    admin.finished(WAKE_MAX)?;
    let (changed, heard) =
        (admin.answer(0).map(|answer| answer.status), waiting.answer(woken).map(|answer| answer.status));
    if (changed, heard) != (Some(201), Some(200)) {
        return Err(format!("a change was answered with {changed:?}, and who waited with {heard:?}"));
    }
    Ok((wake, strangers + waiting.finished(WATCH)?.len()))
}

fn path(agent: &Agent) -> String {
    format!("/api/v1/agents/{}/target-state", agent.id)
}

fn wait_request(agent: &Agent, etag: &str, seconds: u64) -> Vec<u8> {
    get(&format!("{}?wait={seconds}", path(agent)), &agent.key, Some(etag))
}
