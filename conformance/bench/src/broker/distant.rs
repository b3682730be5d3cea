//! A fleet of 4,000 agents with a database 2 ms away.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;

use super::database::{Database, on_runtime, open, to_message};
use super::delay::DelayingProxy;
use super::http_load::{LoadGenerator, expect_status, post};
use super::prepare::{BrokerData, RegisteredAgent};
use super::server::Bench;
use crate::clock::now;
use crate::figures::{Bar, Figures};

const AGENTS: usize = 4_000;
/// Connections on which heartbeats are sent at once.
const CONNECTIONS: usize = 32;
/// Delay of each direction.
const DELAY: Duration = Duration::from_millis(1);
const JSON: &str = "application/json";
const LABEL: &str = "everywhere";
/// Time between two heartbeats of an agent.
const INTERVAL_SECONDS: f64 = 10.0;
const STORED_MAX: Duration = Duration::from_secs(60);
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Measures the time until all heartbeats are stored, and that of a change which matches all agents.
pub fn measure(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    let url = bench.postgres_url.as_deref().ok_or("no --postgres-url was given")?;
    let database = Database::create(bench, url, "distant")?;
    let directory = bench.create_directory("distant")?;
    let (agents, stack) = {
        // Without the delay, which would only make the preparation longer.
        let server = bench.start_broker(&directory, &["--log", "off", "--database-url", &database.url])?;
        let mut data = BrokerData::connect(bench, &server)?;
        let generator = data.create_generator()?;
        let agents = data.create_agents(&generator, "agent", AGENTS)?;
        let label =
            |id: &str| (format!("/api/v1/agents/{id}/labels"), json!({"agent_id": id, "label": LABEL}).to_string());
        let labels: Vec<_> = agents.iter().map(|agent| label(&agent.id)).collect();
        data.post_all(&labels, JSON)?;
        let stacks = data.create_stacks(&generator, "stack", 1)?;
        data.submit_revisions(&stacks)?;
        (agents, stacks[0].clone())
    };
    let proxy = DelayingProxy::start(&database.url, DELAY)?;
    let server = bench.start_broker(&directory, &["--log", "off", "--database-url", proxy.url()])?;
    let start = now();
    send_heartbeats(server.address, &agents)?;
    let sent = start.elapsed().as_secs_f64();
    await_heartbeats(bench, &database.url)?;
    let stored = start.elapsed().as_secs_f64();
    figures.add("4,000 heartbeats, sent within", sent, "s", Bar::None);
    figures.add("4,000 heartbeats, stored 2 ms away within", stored, "s", Bar::AtMost(INTERVAL_SECONDS));
    let request = post(&format!("/api/v1/stacks/{stack}/labels"), &server.key, JSON, &json!(LABEL).to_string());
    let mut admin = LoadGenerator::connect(server.address, 1)?;
    let start = now();
    admin.call(&request, 201)?;
    let took = start.elapsed().as_secs_f64();
    figures.add("a label that matches 4,000 agents, 2 ms away", took, "s", Bar::AtMost(2.0));
    Ok(())
}

/// Sends one heartbeat of each agent with its own key, to a broker that has just started. Agents do not wait for each other.
fn send_heartbeats(broker: SocketAddr, agents: &[RegisteredAgent]) -> Result<(), String> {
    let mut load = LoadGenerator::connect(broker, CONNECTIONS)?;
    let mut waiting = agents.iter();
    let request =
        |agent: &RegisteredAgent| post(&format!("/api/v1/agents/{}/heartbeat", agent.id), &agent.key, JSON, "{}");
    let next = |_: usize| waiting.next().map(|agent| Cow::Owned(request(agent)));
    load.run(next, |_, response| expect_status(&response, 204).map(drop))
}

/// Waits until the heartbeat of every agent is in the database.
fn await_heartbeats(bench: &Bench, url: &str) -> Result<(), String> {
    let mut tasks = JoinSet::new();
    let client = on_runtime(bench, open(url, &mut tasks))?;
    let start = now();
    while start.elapsed() < STORED_MAX {
        let missing = on_runtime(bench, async {
            let row = client.query_one("SELECT count(*) FROM agents WHERE last_heartbeat IS NULL", &[]).await;
            row.map(|row| row.get::<_, i64>(0)).map_err(|error| to_message(&error))
        })?;
        if missing == 0 {
            return Ok(());
        }
        bench.runtime.sleep(CHECK_INTERVAL).map_err(|error| error.to_string())?;
    }
    Err(format!("heartbeats are not stored within {STORED_MAX:?}"))
}
