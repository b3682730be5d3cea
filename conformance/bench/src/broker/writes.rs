//! Accepted revisions per second, durably stored, next to raw single-row transactions in the same type of database.

use std::borrow::Cow;
use std::time::Duration;

use rusqlite::Connection;
use tokio::task::JoinSet;
use tokio_postgres::Client;

use super::database::{Database, on_runtime, open, to_message};
use super::http_load::LoadGenerator;
use super::prepare::{BrokerData, bundle, submission};
use super::server::{Bench, Server};
use crate::clock::now;
use crate::figures::{Bar, Figures, median};

const CONNECTIONS: usize = 32;
const ROUNDS: usize = 5;
const SPAN: Duration = Duration::from_millis(1500);
const BAR: Bar = Bar::AtLeast(0.5);

/// Measures with SQLite.
pub fn measure_sqlite(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    let mut broker = Submissions::start(bench, "writes-sqlite", &["--log", "off"])?;
    let raw = RawSqlite::open(bench)?;
    let rates = take_turns(bench, &mut broker, |number| raw.run(number))?;
    add_figures(figures, "SQLite", &rates);
    Ok(())
}

/// Measures with PostgreSQL.
pub fn measure_postgres(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    let url = bench.postgres_url.as_deref().ok_or("no --postgres-url was given")?;
    let own = Database::create(bench, url, "broker")?;
    let other = Database::create(bench, url, "raw")?;
    let mut broker = Submissions::start(bench, "writes-postgres", &["--log", "off", "--database-url", &own.url])?;
    let raw = RawPostgres::connect(bench, &other.url)?;
    let rates = take_turns(bench, &mut broker, |number| raw.run(number))?;
    add_figures(figures, "PostgreSQL", &rates);
    Ok(())
}

/// Rates of the broker and of the raw transactions, turn by turn.
type Rates = Vec<(f64, f64)>;

fn take_turns(
    bench: &Bench,
    broker: &mut Submissions,
    raw: impl Fn(&mut u64) -> Result<f64, String>,
) -> Result<Rates, String> {
    let (mut rates, mut number) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        bench.check_interrupt()?;
        rates.push((broker.run()?, raw(&mut number)?));
    }
    Ok(rates)
}

fn add_figures(figures: &mut Figures, database: &str, rates: &Rates) {
    let figure = |name: &str| format!("accepted objects, {database}{name}");
    figures.add(&figure(""), median(rates.iter().map(|(broker, _)| *broker).collect()), "/s", Bar::None);
    figures.add(&figure(", raw transactions"), median(rates.iter().map(|(_, raw)| *raw).collect()), "/s", Bar::None);
    figures.add(
        &figure(" per raw transaction"),
        median(rates.iter().map(|(broker, raw)| broker / raw).collect()),
        "ratio",
        BAR,
    );
}

/// A broker and a client that submits revisions.
struct Submissions {
    _server: Server,
    load: LoadGenerator,
    stacks: Vec<String>,
    key: String,
    number: u64,
}

impl Submissions {
    fn start(bench: &Bench, name: &str, flags: &[&str]) -> Result<Self, String> {
        let server = bench.start_broker(&bench.create_directory(name)?, flags)?;
        let mut data = BrokerData::connect(bench, &server)?;
        let generator = data.create_generator()?;
        let stacks = data.create_stacks(&generator, "stack", CONNECTIONS)?;
        let (load, key) = (LoadGenerator::connect(server.address, CONNECTIONS)?, server.key.clone());
        Ok(Self { _server: server, load, stacks, key, number: 0 })
    }

    /// Measures revisions per second. No two have the same bundle.
    fn run(&mut self) -> Result<f64, String> {
        let Self { load, stacks, key, number, .. } = self;
        let next = || {
            *number += 1;
            let stack = &stacks[*number as usize % stacks.len()];
            Cow::Owned(submission(stack, key, *number))
        };
        Ok(load.run_for(SPAN, 201, next)?.rate)
    }
}

/// A connection with the broker's settings of SQLite.
struct RawSqlite(Connection);

impl RawSqlite {
    fn open(bench: &Bench) -> Result<Self, String> {
        let fail = |error: rusqlite::Error| format!("raw SQLite: {error}");
        let connection = Connection::open(bench.create_directory("raw-sqlite")?.join("raw.db")).map_err(fail)?;
        for (name, value) in [("locking_mode", "EXCLUSIVE"), ("journal_mode", "WAL"), ("synchronous", "FULL")] {
            connection.pragma_update(None, name, value).map_err(fail)?;
        }
        connection.execute("CREATE TABLE raw (id INTEGER PRIMARY KEY, text TEXT NOT NULL)", []).map_err(fail)?;
        Ok(Self(connection))
    }

    /// Measures transactions per second.
    fn run(&self, number: &mut u64) -> Result<f64, String> {
        let fail = |error: rusqlite::Error| format!("raw SQLite: {error}");
        let mut insert = self.0.prepare("INSERT INTO raw (text) VALUES (?)").map_err(fail)?;
        let (start, mut count) = (now(), 0_u32);
        while start.elapsed() < SPAN {
            *number += 1;
            insert.execute([bundle(*number)]).map_err(fail)?;
            count += 1;
        }
        Ok(f64::from(count) / start.elapsed().as_secs_f64())
    }
}

/// Connections with one transaction in flight on each.
struct RawPostgres<'a> {
    bench: &'a Bench,
    clients: Vec<Client>,
    /// Tasks that drive the connections; dropping it ends them.
    _tasks: JoinSet<()>,
}

impl<'a> RawPostgres<'a> {
    fn connect(bench: &'a Bench, url: &str) -> Result<Self, String> {
        on_runtime(bench, async {
            let mut tasks = JoinSet::new();
            let mut clients = Vec::new();
            for _ in 0..CONNECTIONS {
                clients.push(open(url, &mut tasks).await?);
            }
            let table = "CREATE TABLE raw (id BIGSERIAL PRIMARY KEY, text TEXT NOT NULL)";
            clients[0].batch_execute(table).await.map_err(|error| to_message(&error))?;
            Ok(Self { bench, clients, _tasks: tasks })
        })
    }

    /// Measures transactions per second.
    fn run(&self, number: &mut u64) -> Result<f64, String> {
        let start = now();
        let counter = std::cell::Cell::new(*number);
        let working = self.clients.iter().map(|client| insert_until(client, start, &counter));
        let counts = on_runtime(self.bench, futures_util::future::try_join_all(working))?;
        *number = counter.get();
        Ok(counts.iter().sum::<f64>() / start.elapsed().as_secs_f64())
    }
}

async fn insert_until(
    client: &Client,
    start: std::time::Instant,
    counter: &std::cell::Cell<u64>,
) -> Result<f64, String> {
    let insert = client.prepare("INSERT INTO raw (text) VALUES ($1)").await.map_err(|error| to_message(&error))?;
    let mut count = 0.0;
    while start.elapsed() < SPAN {
        counter.set(counter.get() + 1);
        client.execute(&insert, &[&bundle(counter.get())]).await.map_err(|error| to_message(&error))?;
        count += 1.0;
    }
    Ok(count)
}
