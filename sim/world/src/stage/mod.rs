//! Where a story is played: in the simulated world, or with real processes on real ports.

mod enlist;
mod simulated;
mod writes;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use sindri_client::Client;
use thiserror::Error;

use crate::gate::Asked;
use crate::oracle::Violation;
use crate::scenario::ClusterFault;

pub use enlist::{Enlisted, enlist, enlist_one};
pub use simulated::{Options, SimulatedStage};
pub use writes::Writes;

/// Why a story did not go on.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Trouble {
    /// The system did what it must not do.
    #[error("{}: {}", .0.oracle, .0.message)]
    Violation(Violation),
    /// The stage cannot do this.
    #[error("this stage cannot {0}")]
    Unsupported(&'static str),
    /// The stage can, and not with a cluster of this kind.
    #[error("not on this kind of cluster: {0}")]
    NotHere(&'static str),
    /// This machine has not what it takes to have such a cluster.
    #[error("{0}")]
    NotRun(String),
    /// The story cannot be played.
    #[error("{0}")]
    Broken(String),
}

impl Trouble {
    /// A property that did not hold.
    pub fn violation(oracle: &'static str, message: impl Into<String>) -> Self {
        Self::Violation(Violation { oracle, message: message.into() })
    }
}

/// What happens to hosts and the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAction {
    /// Cuts the network between two hosts.
    Partition([String; 2]),
    /// Mends it.
    Repair([String; 2]),
    /// Makes it slow.
    Latency([String; 2], Duration, Duration),
    /// Kills a process.
    Kill(String),
    /// Starts it again.
    Restart(String),
    /// Copies the broker's database.
    Backup,
    /// Puts the copy in its place; the operator says so to the broker, or does not.
    Restore {
        /// Whether the operator says so.
        declared: bool,
    },
    /// The broker's database stops answering, or answers again.
    Stall(bool),
}

/// A request of someone else to a cluster.
#[derive(Clone, Debug)]
pub struct ClusterCall {
    /// The method.
    pub method: http::Method,
    /// The path with its query.
    pub target: String,
    /// The type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
}

/// Something that the operator does with the broker.
pub type Job = Box<dyn FnOnce(Client) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// A place to play a story.
pub trait Stage {
    /// Time since the start.
    fn now(&self) -> Duration;

    /// How often the agents poll.
    fn polling_interval(&self) -> Duration;

    /// Lets time pass.
    fn advance(&mut self, by: Duration) -> Result<(), Trouble>;

    /// Lets the operator do a job, and time pass until it is done.
    fn run_job(&mut self, job: Job, done: &dyn Fn() -> bool) -> Result<(), Trouble>;

    /// Someone else asks a cluster; status and body come back.
    fn call_cluster(&mut self, cluster: &str, call: ClusterCall) -> Result<(u16, Value), Trouble>;

    /// Something happens to hosts or the network.
    fn act_on_hosts(&mut self, action: HostAction) -> Result<(), Trouble>;

    /// Starts every process of an agent anew, with another key.
    fn give_key(&mut self, agent: &str, key: String) -> Result<(), Trouble>;

    /// The API server of a cluster begins to fail.
    fn fail_cluster(&mut self, fault: &ClusterFault) -> Result<(), Trouble>;

    /// And is well again.
    fn heal_cluster(&mut self, cluster: &str) -> Result<(), Trouble>;

    /// How often the agent of a cluster wrote what so far. Where only it knows, it counts anew when it is started again,
    /// and what changed nothing counts too.
    fn writes(&mut self, cluster: &str) -> Result<Writes, Trouble>;

    /// What it wrote so far, in this order, as `create ConfigMap shop/a`.
    fn written(&mut self, cluster: &str) -> Result<Vec<String>, Trouble>;

    /// What the agent of a cluster asked so far, by words.
    fn asked(&mut self, cluster: &str, words: &str) -> Result<Vec<Asked>, Trouble>;
}

/// Lets the operator call the broker and hands back the answer.
pub fn operate<T, F>(stage: &mut dyn Stage, call: impl FnOnce(Client) -> F + Send + 'static) -> Result<T, Trouble>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let slot: Arc<Mutex<Option<T>>> = Arc::default();
    let (filled, asked) = (slot.clone(), slot.clone());
    let lock = |slot: &Mutex<Option<T>>| slot.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    let job: Job = Box::new(move |client| {
        let call = call(client);
        Box::pin(async move {
            let answer = call.await;
            *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        })
    });
    stage.run_job(job, &move || lock(&asked))?;
    let answer = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    answer.ok_or_else(|| Trouble::Broken("the operator's call did not end".to_owned()))
}
