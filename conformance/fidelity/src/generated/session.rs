//! A complete run of generated sequences: the cluster, the sequences and the results.

use std::collections::BTreeMap;

use sindri_cluster::program::ExitReason;
use sindri_cluster::{ClusterError, Options, Provider, Stop, Version};
use sindri_record::session::run_on_new_cluster;
use sindri_record::target::{Target, TargetError};
use thiserror::Error;

use super::coverage::Coverage;
use super::difference_class::DifferenceClass;
use super::run::{ComparedSequence, RunError, Servers};
use super::sequence::Sequence;
use super::shrink::Shrinker;
use crate::exchange::Difference;

/// A run that failed.
#[derive(Debug, Error)]
pub enum SessionError {
    /// No cluster, or it ended.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The address of the cluster is invalid.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// No runtime.
    #[error("no runtime: {0}")]
    Runtime(#[from] std::io::Error),
    /// A sequence could not be compared.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl SessionError {
    /// Returns the exit reason of the program.
    pub fn to_exit_reason(&self, stop: &Stop) -> ExitReason {
        match self {
            Self::Cluster(error) => ExitReason::from_cluster_error(error, stop),
            Self::Target(_) | Self::Runtime(_) | Self::Run(_) => ExitReason::Failed(self.to_string()),
        }
    }
}

/// Parameters of a run.
pub struct Session<'a> {
    /// Provider of the real server.
    pub provider: &'a dyn Provider,
    /// Version of Kubernetes.
    pub version: Version,
    /// Seed.
    pub seed: u64,
    /// Numbers of the sequences.
    pub indexes: std::ops::Range<u64>,
    /// Number of requests in each sequence.
    pub requests: usize,
    /// Number of classes of differences that are reduced to a short sequence.
    pub show: usize,
    /// Interrupts the run.
    pub stop: &'a Stop,
    /// Prints progress.
    pub report: fn(String),
}

/// Result of a run.
#[derive(Clone, Debug, Default)]
pub struct RunResult {
    /// Number of sequences.
    pub sequences: u64,
    /// Requests by resource and verb.
    pub coverage: Coverage,
    /// Sequences that differ.
    pub compared: Vec<ComparedSequence>,
    /// Numbers of sequences by the class of their first difference without a waiver.
    pub classes: BTreeMap<DifferenceClass, Vec<u64>>,
    /// Short sequences of the most frequent classes.
    pub shrunk: Vec<(DifferenceClass, ComparedSequence)>,
}

impl Session<'_> {
    /// Runs all sequences with a new API server without controllers and other writers.
    ///
    /// # Errors
    /// If there is no cluster, or a sequence cannot start.
    pub fn run(&self, is_waived: &dyn Fn(&Difference) -> bool) -> Result<RunResult, SessionError> {
        (self.report)(format!("starting an API server {}", self.version.release()));
        let options = Options { version: self.version, pristine: true, stop: self.stop.clone(), ..Options::default() };
        run_on_new_cluster(self.provider, &options, async |target: Target| {
            self.compare(&Servers::prepare(target).await?, is_waived).await
        })
    }

    async fn compare(
        &self,
        servers: &Servers,
        is_waived: &dyn Fn(&Difference) -> bool,
    ) -> Result<RunResult, SessionError> {
        let sequences = self.indexes.clone().map(|index| Sequence::generate(self.seed, index, self.requests));
        let (coverage, compared) = servers.compare_all(sequences, self.report).await?;
        let mut examples: BTreeMap<DifferenceClass, Vec<&ComparedSequence>> = BTreeMap::new();
        for one in &compared {
            if let Some((_, class)) = one.class(is_waived) {
                examples.entry(class).or_default().push(one);
            }
        }
        let mut frequent: Vec<(&DifferenceClass, &Vec<&ComparedSequence>)> = examples.iter().collect();
        frequent.sort_by_key(|(_, examples)| std::cmp::Reverse(examples.len()));
        let mut shrunk = Vec::new();
        for (class, examples) in frequent.into_iter().take(self.show) {
            (self.report)(format!("reducing a sequence of: {class}"));
            let example = ComparedSequence::clone(examples[0]);
            shrunk.push((class.clone(), Shrinker::new(servers, class.clone(), example).find_shortest().await?));
        }
        let number = |one: &&ComparedSequence| one.sequence.index;
        let classes =
            examples.iter().map(|(class, examples)| (class.clone(), examples.iter().map(number).collect())).collect();
        let sequences = self.indexes.end - self.indexes.start;
        Ok(RunResult { sequences, coverage, classes, shrunk, compared })
    }
}
