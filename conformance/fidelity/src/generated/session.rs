//! A whole run of generated sequences: the cluster, the sequences, and what is told about them.

use std::collections::BTreeMap;

use sindri_cluster::program::ExitReason;
use sindri_cluster::{ClusterError, Options, Provider, Stop, Version};
use sindri_record::session::on_fresh_cluster;
use sindri_record::target::{Target, TargetError};
use thiserror::Error;

use super::class::Class;
use super::coverage::Coverage;
use super::run::{Compared, RunError, Servers};
use super::sequence::Sequence;
use super::shrink::Shrinker;
use crate::exchange::Difference;

/// A run that could not take place.
#[derive(Debug, Error)]
pub enum SessionError {
    /// There was no cluster, or it ended.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The cluster cannot be reached as it says.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// There is nothing to wait with.
    #[error("no runtime: {0}")]
    Runtime(#[from] std::io::Error),
    /// A sequence could not be compared.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl SessionError {
    /// How a program ends because of it.
    pub fn ending(&self, stop: &Stop) -> ExitReason {
        match self {
            Self::Cluster(error) => ExitReason::from_cluster_error(error, stop),
            Self::Target(_) | Self::Runtime(_) | Self::Run(_) => ExitReason::Failed(self.to_string()),
        }
    }
}

/// What is played.
pub struct Session<'a> {
    /// Where the real server comes from.
    pub provider: &'a dyn Provider,
    /// Its version.
    pub version: Version,
    /// The seed of everything.
    pub seed: u64,
    /// The sequences, by their numbers.
    pub indexes: std::ops::Range<u64>,
    /// Requests in each.
    pub requests: usize,
    /// How many classes of differences are made short and shown.
    pub show: usize,
    /// Whether to go on.
    pub stop: &'a Stop,
    /// Hears how far it is.
    pub report: fn(String),
}

/// What a run found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// How many sequences were played.
    pub sequences: u64,
    /// What was asked.
    pub coverage: Coverage,
    /// Every sequence that differs.
    pub compared: Vec<Compared>,
    /// Sequences by the class of their first difference that is not excused.
    pub classes: BTreeMap<Class, Vec<u64>>,
    /// The shortest sequences of the most frequent classes.
    pub shrunk: Vec<(Class, Compared)>,
}

impl Session<'_> {
    /// Plays everything on a fresh API server without controllers, where nobody else writes.
    ///
    /// # Errors
    /// When there is no cluster, or a sequence cannot begin.
    pub fn run(&self, is_excused: &dyn Fn(&Difference) -> bool) -> Result<Found, SessionError> {
        (self.report)(format!("starting an API server {}", self.version.release()));
        let options = Options { version: self.version, pristine: true, stop: self.stop.clone(), ..Options::default() };
        on_fresh_cluster(self.provider, &options, async |target: Target| {
            self.play(&Servers::prepare(target).await?, is_excused).await
        })
    }

    async fn play(&self, servers: &Servers, is_excused: &dyn Fn(&Difference) -> bool) -> Result<Found, SessionError> {
        let sequences = self.indexes.clone().map(|index| Sequence::generate(self.seed, index, self.requests));
        let (coverage, compared) = servers.compare_all(sequences, self.report).await?;
        let mut examples: BTreeMap<Class, Vec<&Compared>> = BTreeMap::new();
        for one in &compared {
            if let Some((_, class)) = one.class(is_excused) {
                examples.entry(class).or_default().push(one);
            }
        }
        let mut frequent: Vec<(&Class, &Vec<&Compared>)> = examples.iter().collect();
        frequent.sort_by_key(|(_, examples)| std::cmp::Reverse(examples.len()));
        let mut shrunk = Vec::new();
        for (class, examples) in frequent.into_iter().take(self.show) {
            (self.report)(format!("looking for the shortest sequence of: {class}"));
            let example = Compared::clone(examples[0]);
            shrunk.push((class.clone(), Shrinker::new(servers, class.clone(), example).shortest().await?));
        }
        let number = |one: &&Compared| one.sequence.index;
        let classes =
            examples.iter().map(|(class, examples)| (class.clone(), examples.iter().map(number).collect())).collect();
        let sequences = self.indexes.end - self.indexes.start;
        Ok(Found { sequences, coverage, classes, shrunk, compared })
    }
}
