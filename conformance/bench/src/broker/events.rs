//! Events of one agent with PostgreSQL, next to raw transactions that insert an event and its audit entry.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio_postgres::Client;

use super::database::{Database, on_runtime, open, to_message};
use super::http_load::{LoadGenerator, post};
use super::prepare::BrokerData;
use super::server::Bench;
use crate::clock::now;
use crate::figures::{Bar, Figures, median};

const CONNECTIONS: usize = 8;
const ROUNDS: usize = 5;
const SPAN: Duration = Duration::from_millis(1500);
const TABLES: &str =
    "CREATE TABLE events (position BIGSERIAL PRIMARY KEY, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL);
    CREATE TABLE audit (position BIGSERIAL PRIMARY KEY, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL)";

/// Measures both in turns.
pub fn measure(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    let url = bench.postgres_url.as_deref().ok_or("no --postgres-url was given")?;
    let (own, other) = (Database::create(bench, url, "events")?, Database::create(bench, url, "raw_events")?);
    let flags = ["--log", "off", "--database-url", &own.url, "--database-connections", "8"];
    let server = bench.start_broker(&bench.create_directory("events")?, &flags)?;
    let mut data = BrokerData::connect(bench, &server)?;
    let generator = data.create_generator()?;
    let agent = data.create_agents(&generator, "agent", 1)?.remove(0);
    let stacks = data.create_stacks(&generator, "stack", 1)?;
    data.add_targets(&agent.id, &stacks)?;
    let revision = data.submit_revisions(&stacks)?.remove(0);
    let body = json!({
        "agent_id": agent.id, "deployment_object_id": revision, "event_type": "DEPLOY", "status": "SUCCESS",
        "message": "applied",
    });
    let request =
        post(&format!("/api/v1/agents/{}/events", agent.id), &agent.key, "application/json", &body.to_string());
    let mut load = LoadGenerator::connect(server.address, CONNECTIONS)?;
    let mut tasks = JoinSet::new();
    let mut clients = on_runtime(bench, connect(&other.url, &mut tasks))?;
    let mut rates = Vec::new();
    for round in 0..ROUNDS {
        bench.check_interrupt()?;
        let broker = load.run_for(SPAN, 201, || Cow::Borrowed(&request))?.rate;
        rates.push((broker, run_raw(bench, &mut clients, round)?));
    }
    figures.add(
        "events of one agent, PostgreSQL",
        median(rates.iter().map(|(own, _)| *own).collect()),
        "/s",
        Bar::None,
    );
    let raw = median(rates.iter().map(|(_, raw)| *raw).collect());
    figures.add("events of one agent, PostgreSQL, raw transactions", raw, "/s", Bar::None);
    let ratio = median(rates.iter().map(|(own, raw)| own / raw).collect());
    figures.add("events of one agent, PostgreSQL, per raw transaction", ratio, "ratio", Bar::AtLeast(0.7));
    Ok(())
}

async fn connect(url: &str, tasks: &mut JoinSet<()>) -> Result<Vec<Client>, String> {
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        clients.push(open(url, tasks).await?);
    }
    clients[0].batch_execute(TABLES).await.map_err(|error| to_message(&error))?;
    Ok(clients)
}

/// Measures raw transactions per second.
fn run_raw(bench: &Bench, clients: &mut [Client], round: usize) -> Result<f64, String> {
    let start = now();
    let working = clients.iter_mut().enumerate().map(|(client, connection)| async move {
        insert_until(connection, start, &format!("{round}-{client}")).await.map_err(|error| to_message(&error))
    });
    let counts = on_runtime(bench, futures_util::future::try_join_all(working))?;
    Ok(counts.iter().sum::<f64>() / start.elapsed().as_secs_f64())
}

async fn insert_until(
    client: &mut Client,
    start: std::time::Instant,
    prefix: &str,
) -> Result<f64, tokio_postgres::Error> {
    let event = client.prepare("INSERT INTO events (id, text) VALUES ($1, $2)").await?;
    let audit = client.prepare("INSERT INTO audit (id, text) VALUES ($1, $2)").await?;
    let mut count = 0.0;
    while start.elapsed() < SPAN {
        let (id, text) = (format!("{prefix}-{count}"), "applied");
        let transaction = client.transaction().await?;
        transaction.execute(&event, &[&id, &text]).await?;
        transaction.execute(&audit, &[&id, &text]).await?;
        transaction.commit().await?;
        count += 1.0;
    }
    Ok(count)
}
