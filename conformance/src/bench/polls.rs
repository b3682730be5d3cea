//! Polls: an idle one and a full target state, next to a bare handler, of a small broker and of a large one.
//!
//! All servers run at the same time and are asked in turns, so that noise hits them alike; what counts is the median
//! of the turns' ratios. The broker's log is off where it is compared: the bare handler has none.

use std::borrow::Cow;
use std::time::Duration;

use sindri_figures::{Bar, Sheet, median};

use super::load::{Load, Round, get};
use super::prepare::{Agent, Filling, copy_place};
use super::server::{Bench, Server};

const CONNECTIONS: usize = 32;
const ROUNDS: usize = 7;
const SPAN: Duration = Duration::from_millis(500);
const WARM_UP: Duration = Duration::from_millis(300);
/// What one agent runs.
const STACKS: usize = 10;
/// What a large broker has besides.
const OTHER_AGENTS: usize = 10_000;
const OTHER_STACKS: usize = 500;
const EVENTS: usize = 30_000;
const LOG_OFF: [&str; 2] = ["--log", "off"];

/// A broker with many agents, and what is needed to speak for them.
pub struct Large {
    /// The broker.
    pub server: Server,
    /// All but the one that is polled.
    pub agents: Vec<Agent>,
    /// A stack with a revision, targeted at none of them.
    pub stack: String,
}

/// Two brokers with the same agent in them.
struct Pair {
    small: Server,
    logging: Server,
    large: Large,
    agent: Agent,
}

/// Measures polls; the large broker is handed on.
pub fn measure(bench: &Bench, sheet: &mut Sheet) -> Result<Large, String> {
    let pair = prepare(bench)?;
    let bare = bench.start_bare()?;
    let contestants = [
        Contestant::idle(&bare, &pair.agent)?,
        Contestant::idle(&pair.small, &pair.agent)?,
        Contestant::idle(&pair.large.server, &pair.agent)?,
        Contestant::full(&pair.small, &pair.agent)?,
        Contestant::full(&pair.large.server, &pair.agent)?,
        Contestant::idle(&pair.logging, &pair.agent)?,
    ];
    let [bare, idle, large_idle, full, large_full, logging] = take_turns(bench, contestants)?;
    let rate = |round: &Round| round.rate;
    sheet.add("idle poll, bare handler", median(bare.iter().map(rate).collect()), "/s", Bar::None);
    sheet.add("idle poll, broker", median(idle.iter().map(rate).collect()), "/s", Bar::None);
    sheet.add("idle poll per bare handler", ratio(&idle, &bare, rate), "ratio", Bar::AtLeast(0.7));
    sheet.add("idle poll, p99", median(idle.iter().map(|round| round.p99).collect()), "ms", Bar::None);
    let p99 = ratio(&idle, &bare, |round| round.p99);
    sheet.add("idle poll, p99 per bare handler's", p99, "ratio", Bar::AtMost(3.0));
    sheet.add("idle poll with log lines per bare handler", ratio(&logging, &bare, rate), "ratio", Bar::None);
    sheet.add("full target state per bare handler", ratio(&full, &bare, rate), "ratio", Bar::AtLeast(0.35));
    let slower = |small: &[Round], large: &[Round]| ratio(small, large, rate) - 1.0;
    sheet.add("idle poll, slower with a large broker", slower(&idle, &large_idle), "ratio", Bar::AtMost(0.1));
    sheet.add("full target state, slower with a large broker", slower(&full, &large_full), "ratio", Bar::AtMost(0.3));
    Ok(pair.large)
}

/// Data is made where writing is cheap, and copied to the disk that the measured brokers use.
fn prepare(bench: &Bench) -> Result<Pair, String> {
    let workshop = bench.memory.join("workshop");
    std::fs::create_dir_all(&workshop).map_err(|error| format!("{}: {error}", workshop.display()))?;
    let server = bench.start_broker(&workshop, &LOG_OFF)?;
    let mut filling = Filling::of(bench, &server)?;
    let generator = filling.generator()?;
    let agent = filling.agents(&generator, "polled", 1)?.remove(0);
    let stacks = filling.stacks(&generator, "own", STACKS)?;
    let revisions = filling.revisions(&stacks)?;
    filling.target(&agent.id, &stacks)?;
    drop((filling, server));
    let [small, logging] = ["small", "logging"].map(|name| bench.place(name));
    let (small, logging) = (small?, logging?);
    copy_place(&workshop, &small)?;
    copy_place(&workshop, &logging)?;

    let server = bench.start_broker(&workshop, &LOG_OFF)?;
    let mut filling = Filling::of(bench, &server)?;
    let agents = filling.agents(&generator, "other", OTHER_AGENTS)?;
    filling.stacks(&generator, "other", OTHER_STACKS)?;
    filling.events(&agent.id, &revisions, EVENTS)?;
    drop((filling, server));
    let large = bench.place("large")?;
    copy_place(&workshop, &large)?;
    Ok(Pair {
        small: bench.start_broker(&small, &LOG_OFF)?,
        logging: bench.start_broker(&logging, &[])?,
        large: Large { server: bench.start_broker(&large, &LOG_OFF)?, agents, stack: stacks[0].clone() },
        agent,
    })
}

/// One server with one kind of request.
struct Contestant {
    load: Load,
    request: Vec<u8>,
    status: u16,
}

impl Contestant {
    /// An agent that knows everything already.
    fn idle(server: &Server, agent: &Agent) -> Result<Self, String> {
        let mut load = Load::connect(server.address, CONNECTIONS)?;
        let path = format!("/api/v1/agents/{}/target-state", agent.id);
        load.send(0, &get(&path, &agent.key, None))?;
        let finished = load.finished(Duration::from_secs(10))?;
        let answer = finished.first().and_then(|connection| load.answer(*connection)).ok_or("no answer to a poll")?;
        let etag = answer.header("etag").ok_or("a target state has no ETag")?.to_owned();
        Ok(Self { load, request: get(&path, &agent.key, Some(&etag)), status: 304 })
    }

    /// An agent that knows nothing yet.
    fn full(server: &Server, agent: &Agent) -> Result<Self, String> {
        let request = get(&format!("/api/v1/agents/{}/target-state", agent.id), &agent.key, None);
        Ok(Self { load: Load::connect(server.address, CONNECTIONS)?, request, status: 200 })
    }

    fn run(&mut self, span: Duration) -> Result<Round, String> {
        self.load.run_for(span, self.status, || Cow::Borrowed(&self.request))
    }
}

fn take_turns<const N: usize>(bench: &Bench, mut contestants: [Contestant; N]) -> Result<[Vec<Round>; N], String> {
    let mut rounds = [const { Vec::new() }; N];
    for contestant in &mut contestants {
        contestant.run(WARM_UP)?;
    }
    for _ in 0..ROUNDS {
        bench.go_on()?;
        for (contestant, rounds) in contestants.iter_mut().zip(&mut rounds) {
            rounds.push(contestant.run(SPAN)?);
        }
    }
    Ok(rounds)
}

/// The median of the ratios of each turn.
fn ratio(of: &[Round], to: &[Round], what: impl Fn(&Round) -> f64) -> f64 {
    median(of.iter().zip(to).map(|(of, to)| what(of) / what(to)).collect())
}
