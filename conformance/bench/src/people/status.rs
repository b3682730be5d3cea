//! `sindri status` of 1,000 stacks on 100 agents, each with a report: the time for which a person waits, and the requests.

use std::process::Stdio;
use std::time::Duration;

use sindri_conformance::metrics::Counters;

use super::bench::PeopleBench;
use crate::broker::{BrokerData, Database, LoadGenerator, RegisteredAgent, Server, copy_directory, get};
use crate::clock::now;
use crate::figures::{Bar, Figures, median};

const AGENTS: usize = 100;
const STACKS: usize = 1_000;
const RUNS: usize = 9;
const BAR: Bar = Bar::AtMost(300.0);
/// Exactly one: the output shows that there is at least one.
const REQUESTS_BAR: Bar = Bar::AtMost(1.0);
const LABEL: &str = "everywhere";
const COUNTERS_MAX: Duration = Duration::from_secs(10);
const LOG_OFF: [&str; 2] = ["--log", "off"];

/// Measures with SQLite. The data is created in memory.
pub fn measure_sqlite(bench: &PeopleBench, figures: &mut Figures) -> Result<(), String> {
    let prepared = bench.servers.memory.join("status");
    std::fs::create_dir_all(&prepared).map_err(|error| format!("{}: {error}", prepared.display()))?;
    let server = bench.servers.start_broker(&prepared, &LOG_OFF)?;
    let agents = prepare(bench, &server)?;
    drop(server);
    let directory = bench.servers.create_directory("status-sqlite")?;
    copy_directory(&prepared, &directory)?;
    let server = bench.servers.start_broker(&directory, &LOG_OFF)?;
    measure_server(bench, figures, "SQLite", &server, &agents)
}

/// Measures with PostgreSQL.
pub fn measure_postgres(bench: &PeopleBench, figures: &mut Figures) -> Result<(), String> {
    let url = bench.servers.postgres_url.as_deref().ok_or("no --postgres-url was given")?;
    let database = Database::create(&bench.servers, url, "status")?;
    let flags = ["--log", "off", "--database-url", &database.url];
    let server = bench.servers.start_broker(&bench.servers.create_directory("status-postgres")?, &flags)?;
    let agents = prepare(bench, &server)?;
    measure_server(bench, figures, "PostgreSQL", &server, &agents)
}

/// Creates agents and stacks, assigns each stack to each agent, and reports about all of them.
fn prepare(bench: &PeopleBench, server: &Server) -> Result<Vec<RegisteredAgent>, String> {
    let mut data = BrokerData::connect(&bench.servers, server)?;
    let generator = data.create_generator()?;
    let agents = data.create_agents(&generator, "cluster", AGENTS)?;
    data.activate(&agents)?;
    data.label_agents(&agents, LABEL)?;
    let stacks = data.create_stacks(&generator, "stack", STACKS)?;
    let revisions = data.submit_revisions(&stacks)?;
    data.label_stacks(&stacks, LABEL)?;
    data.report_conditions(&agents, &stacks, &revisions)?;
    Ok(agents)
}

fn measure_server(
    bench: &PeopleBench,
    figures: &mut Figures,
    database: &str,
    server: &Server,
    agents: &[RegisteredAgent],
) -> Result<(), String> {
    // Agents without a recent heartbeat would be offline.
    BrokerData::connect(&bench.servers, server)?.send_heartbeats(agents)?;
    let before = count_requests(bench, server)?;
    check_output(bench, server)?;
    let requests = count_requests(bench, server)? - before;
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        bench.servers.check_interrupt()?;
        times.push(run(bench, server)?);
    }
    let name = format!("sindri status, 1,000 stacks on 100 agents, {database}");
    figures.add(&name, median(times), "ms", BAR);
    figures.add(&format!("{name}, requests"), requests as f64, "requests", REQUESTS_BAR);
    let mut load = LoadGenerator::connect(server.address, 1)?;
    let request = get("/api/v1/status", &server.key, None);
    let mut time = || load.call(&request, 200).map(|response| response.took.as_secs_f64() * 1000.0);
    let times: Vec<f64> = (0..RUNS).map(|_| time()).collect::<Result<_, _>>()?;
    figures.add(&format!("{name}, response of the broker"), median(times), "ms", Bar::None);
    Ok(())
}

/// Returns the number of requests to the broker so far, without those for its metrics.
fn count_requests(bench: &PeopleBench, server: &Server) -> Result<u64, String> {
    let address = server.address.to_string();
    let counters = Counters::fetch(&address);
    let counters = bench.servers.runtime.block_on(COUNTERS_MAX, counters).map_err(|error| error.to_string())??;
    Ok(counters.requests())
}

/// Checks that the output has each stack and each agent, and both states of the reports.
fn check_output(bench: &PeopleBench, server: &Server) -> Result<(), String> {
    let output = status_command(bench, server).stdout(Stdio::piped()).output().map_err(to_message)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let (stacks, header) = (text.lines().filter(|line| line.starts_with("stack-")), text.lines().next());
    let matrix: Vec<&str> = stacks.filter(|line| line.split_whitespace().count() == AGENTS + 2).collect();
    let is_complete = matrix.len() == STACKS
        && header.is_some_and(|header| header.split_whitespace().count() == AGENTS + 2)
        && ["Ready", "Failed"].iter().all(|state| matrix.iter().any(|line| line.contains(state)));
    if output.status.success() && is_complete {
        return Ok(());
    }
    let start: String = text.chars().take(400).collect();
    Err(format!("sindri status: {}, {} lines with all agents: {start}", output.status, matrix.len()))
}

/// Runs the command. Returns the milliseconds from its start to its end.
fn run(bench: &PeopleBench, server: &Server) -> Result<f64, String> {
    let mut command = status_command(bench, server);
    let start = now();
    let status = command.status().map_err(to_message)?;
    let took = start.elapsed();
    if status.success() { Ok(took.as_secs_f64() * 1000.0) } else { Err(format!("sindri status: {status}")) }
}

/// Returns the command; the key is not in its arguments.
fn status_command(bench: &PeopleBench, server: &Server) -> std::process::Command {
    let mut command = bench.command_line(&["status"]);
    command.env("SINDRI_BROKER", format!("http://{}", server.address)).env("SINDRI_KEY", &server.key);
    command
}

fn to_message(error: std::io::Error) -> String {
    format!("sindri: {error}")
}
