//! Polls of a small and of a large broker, idle or with a full target state, next to a bare handler.
//!
//! All servers run at the same time and are measured in turns, so that noise affects them alike; the result is the median of
//! the ratios of the turns. The broker's log is off where it is compared, because the bare handler has none.

use std::borrow::Cow;
use std::time::Duration;

use super::http_load::{LoadGenerator, Throughput, get};
use super::prepare::{BrokerData, RegisteredAgent, copy_directory};
use super::server::{Bench, Server};
use crate::figures::{Bar, Figures, median};

const CONNECTIONS: usize = 32;
const ROUNDS: usize = 7;
const SPAN: Duration = Duration::from_millis(500);
const WARM_UP: Duration = Duration::from_millis(300);
/// Stacks of the agent that polls.
const STACKS: usize = 10;
/// Additional data of the large broker.
const OTHER_AGENTS: usize = 10_000;
const OTHER_STACKS: usize = 500;
const EVENTS: usize = 30_000;
const LOG_OFF: [&str; 2] = ["--log", "off"];

/// A broker with many agents.
pub struct LargeBroker {
    /// The broker.
    pub server: Server,
    /// All agents except the one that polls.
    pub agents: Vec<RegisteredAgent>,
    /// A stack with a revision that is targeted at none of them.
    pub stack: String,
}

/// Brokers with the same agent.
struct Brokers {
    small: Server,
    logging: Server,
    large: LargeBroker,
    agent: RegisteredAgent,
}

/// Measures polls. Returns the large broker for further measurements.
pub fn measure(bench: &Bench, figures: &mut Figures) -> Result<LargeBroker, String> {
    let brokers = prepare(bench)?;
    let bare = bench.start_bare()?;
    let servers = [
        Measured::idle(&bare, &brokers.agent)?,
        Measured::idle(&brokers.small, &brokers.agent)?,
        Measured::idle(&brokers.large.server, &brokers.agent)?,
        Measured::full(&brokers.small, &brokers.agent)?,
        Measured::full(&brokers.large.server, &brokers.agent)?,
        Measured::idle(&brokers.logging, &brokers.agent)?,
    ];
    let [bare, idle, large_idle, full, large_full, logging] = take_turns(bench, servers)?;
    let rate = |round: &Throughput| round.rate;
    figures.add("idle poll, bare handler", median(bare.iter().map(rate).collect()), "/s", Bar::None);
    figures.add("idle poll, broker", median(idle.iter().map(rate).collect()), "/s", Bar::None);
    figures.add("idle poll per bare handler", ratio(&idle, &bare, rate), "ratio", Bar::AtLeast(0.7));
    figures.add("idle poll, p99", median(idle.iter().map(|round| round.p99).collect()), "ms", Bar::None);
    let p99 = ratio(&idle, &bare, |round| round.p99);
    figures.add("idle poll, p99 per bare handler's", p99, "ratio", Bar::AtMost(3.0));
    figures.add("idle poll with log lines per bare handler", ratio(&logging, &bare, rate), "ratio", Bar::None);
    figures.add("full target state per bare handler", ratio(&full, &bare, rate), "ratio", Bar::AtLeast(0.35));
    let slower = |small: &[Throughput], large: &[Throughput]| ratio(small, large, rate) - 1.0;
    figures.add("idle poll, slower with a large broker", slower(&idle, &large_idle), "ratio", Bar::AtMost(0.1));
    figures.add("full target state, slower with a large broker", slower(&full, &large_full), "ratio", Bar::AtMost(0.3));
    Ok(brokers.large)
}

/// Creates data in memory and copies it to the disk that the measured brokers use.
fn prepare(bench: &Bench) -> Result<Brokers, String> {
    let prepared = bench.memory.join("prepared");
    std::fs::create_dir_all(&prepared).map_err(|error| format!("{}: {error}", prepared.display()))?;
    let server = bench.start_broker(&prepared, &LOG_OFF)?;
    let mut data = BrokerData::connect(bench, &server)?;
    let generator = data.create_generator()?;
    let agent = data.create_agents(&generator, "polled", 1)?.remove(0);
    let stacks = data.create_stacks(&generator, "own", STACKS)?;
    let revisions = data.submit_revisions(&stacks)?;
    data.add_targets(&agent.id, &stacks)?;
    drop((data, server));
    let [small, logging] = ["small", "logging"].map(|name| bench.create_directory(name));
    let (small, logging) = (small?, logging?);
    copy_directory(&prepared, &small)?;
    copy_directory(&prepared, &logging)?;

    let server = bench.start_broker(&prepared, &LOG_OFF)?;
    let mut data = BrokerData::connect(bench, &server)?;
    let agents = data.create_agents(&generator, "other", OTHER_AGENTS)?;
    data.create_stacks(&generator, "other", OTHER_STACKS)?;
    data.report_events(&agent.id, &revisions, EVENTS)?;
    drop((data, server));
    let large = bench.create_directory("large")?;
    copy_directory(&prepared, &large)?;
    Ok(Brokers {
        small: bench.start_broker(&small, &LOG_OFF)?,
        logging: bench.start_broker(&logging, &[])?,
        large: LargeBroker { server: bench.start_broker(&large, &LOG_OFF)?, agents, stack: stacks[0].clone() },
        agent,
    })
}

/// One server with one request that is repeated.
struct Measured {
    load: LoadGenerator,
    request: Vec<u8>,
    status: u16,
}

impl Measured {
    /// Polls with the current ETag.
    fn idle(server: &Server, agent: &RegisteredAgent) -> Result<Self, String> {
        let mut load = LoadGenerator::connect(server.address, CONNECTIONS)?;
        let path = format!("/api/v1/agents/{}/target-state", agent.id);
        load.send(0, &get(&path, &agent.key, None))?;
        let finished = load.wait_for_responses(Duration::from_secs(10))?;
        let response = finished
            .first()
            .and_then(|connection| load.response(*connection))
            .ok_or("there was no response to a poll")?;
        let etag = response.header("etag").ok_or("a target state has no ETag")?.to_owned();
        Ok(Self { load, request: get(&path, &agent.key, Some(&etag)), status: 304 })
    }

    /// Polls without an ETag.
    fn full(server: &Server, agent: &RegisteredAgent) -> Result<Self, String> {
        let request = get(&format!("/api/v1/agents/{}/target-state", agent.id), &agent.key, None);
        Ok(Self { load: LoadGenerator::connect(server.address, CONNECTIONS)?, request, status: 200 })
    }

    fn run(&mut self, span: Duration) -> Result<Throughput, String> {
        self.load.run_for(span, self.status, || Cow::Borrowed(&self.request))
    }
}

fn take_turns<const N: usize>(bench: &Bench, mut servers: [Measured; N]) -> Result<[Vec<Throughput>; N], String> {
    let mut rounds = [const { Vec::new() }; N];
    for server in &mut servers {
        server.run(WARM_UP)?;
    }
    for _ in 0..ROUNDS {
        bench.check_interrupt()?;
        for (server, rounds) in servers.iter_mut().zip(&mut rounds) {
            rounds.push(server.run(SPAN)?);
        }
    }
    Ok(rounds)
}

/// Returns the median of the ratios of the turns.
fn ratio(measured: &[Throughput], baseline: &[Throughput], value: impl Fn(&Throughput) -> f64) -> f64 {
    median(measured.iter().zip(baseline).map(|(measured, baseline)| value(measured) / value(baseline)).collect())
}
