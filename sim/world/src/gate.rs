//! What stands before a simulated API server: the faults of a story, the faults of an exploration, and a record
//! of what its client asked: the agent, or the controller of a guest.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use sindri_apiserver::{Admission, Fault, Request, Response};

use crate::chaos::{GateChaos, GateChoice};
use crate::{shim, trace};

/// How the agent introduces itself.
const AGENT: &str = "sindri-agent/";

/// Words that a request has, or has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(Vec<String>);

impl Words {
    /// Reads words; one that starts with `!` must not be there.
    pub fn parse(text: &str) -> Self {
        Self(text.split_whitespace().map(str::to_owned).collect())
    }

    /// Whether a request has them all.
    pub fn match_line(&self, line: &str) -> bool {
        self.0.iter().all(|word| match word.strip_prefix('!') {
            Some(absent) => !line.contains(absent),
            None => line.contains(word.as_str()),
        })
    }
}

/// A fault of a story.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Which requests.
    pub words: Words,
    /// What happens to them.
    pub fault: Fault,
    /// How often; until it is removed if `None`.
    pub times: Option<u32>,
}

/// A request of the client that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When.
    pub at: Duration,
    /// As it reads in the trace: method, path, and `dry-run`.
    pub line: String,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    chaos: Option<GateChaos>,
    /// What happens to the request of this number, counted from 1.
    strike: Option<(usize, GateChoice)>,
    asked: Vec<Asked>,
    agent_dies: bool,
}

/// The gate of one cluster.
pub struct Gate {
    host: String,
    /// How the client introduces itself that this is about; everybody else passes.
    client: String,
    state: Mutex<State>,
}

impl Gate {
    /// An open gate before the API server on this host, which looks at the agent.
    pub fn new(host: String) -> Self {
        Self::for_client(host, AGENT)
    }

    /// The same for any other client whose user agent begins like this.
    pub fn for_client(host: String, client: &str) -> Self {
        Self { host, client: client.to_owned(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a fault.
    pub fn add_rule(&self, rule: Rule) {
        self.state().rules.push(rule);
    }

    /// Ends every fault of the story.
    pub fn clear_rules(&self) {
        self.state().rules.clear();
    }

    /// Starts or ends the faults of an exploration.
    pub fn set_chaos(&self, chaos: Option<GateChaos>) {
        self.state().chaos = chaos;
    }

    /// Decides about the request of this number, counted from 1: for those who try one after the other.
    pub fn strike_at(&self, number: usize, choice: GateChoice) {
        self.state().strike = Some((number, choice));
    }

    /// Adds a line to the trace of this API server.
    pub fn note(&self, text: &str) {
        trace::record(&self.host, text);
    }

    /// Whether the client is to die, asked once.
    pub fn take_agent_dies(&self) -> bool {
        std::mem::take(&mut self.state().agent_dies)
    }

    /// How many requests of the client arrived so far.
    pub fn asked_count(&self) -> usize {
        self.state().asked.len()
    }

    /// What the client asked so far that has these words.
    pub fn asked(&self, words: &Words) -> Vec<Asked> {
        self.state().asked.iter().filter(|asked| words.match_line(&asked.line)).cloned().collect()
    }
}

fn line(request: &Request) -> String {
    let dry_run = if request.query.contains_key("dryRun") { " dry-run" } else { "" };
    format!("{} {}{dry_run}", request.method, request.path)
}

impl sindri_apiserver::Gate for Gate {
    fn admit(&self, _: Timestamp, request: &Request) -> Admission {
        if !request.headers.user_agent.starts_with(&self.client) {
            return Admission::default();
        }
        let line = line(request);
        let mut state = self.state();
        state.asked.push(Asked { at: Duration::from_nanos(shim::now()), line: line.clone() });
        let rule = state.rules.iter_mut().find(|rule| rule.times != Some(0) && rule.words.match_line(&line));
        let by_story = rule.map(|rule| {
            rule.times = rule.times.map(|times| times - 1);
            rule.fault.clone()
        });
        let mut choice = state.chaos.as_mut().map(GateChaos::choose).unwrap_or_default();
        let number = state.asked.len();
        if let Some((_, struck)) = state.strike.take_if(|(struck, _)| *struck == number) {
            choice = struck;
        }
        if choice.kill {
            state.agent_dies = true;
        }
        Admission { delay: Duration::ZERO, fault: by_story.or(choice.fault) }
    }

    fn answered(&self, _: Timestamp, request: &Request, response: &Response) {
        let status = response.status().map_or_else(|| "cut".to_owned(), |status| status.to_string());
        trace::record(&self.host, &format!("< {} {status}", line(request)));
    }
}
