//! Runs sequences with both servers and compares the responses.

use futures_util::{StreamExt, stream};
use serde_json::Value;
use sindri_record::recording::normalise_transcript;
use sindri_record::script::ScriptError;
use sindri_record::script_runner::{OnFailure, ScriptRunError, run_script};
use sindri_record::server::RemoteServer;
use sindri_record::target::Target;
use thiserror::Error;

use super::coverage::Coverage;
use super::difference_class::DifferenceClass;
use super::sequence::Sequence;
use super::setup::{self, SetupError};
use crate::exchange::{Difference, differences};
use crate::simulated::SimulatedServer;

/// Concurrent sequences. Each has namespaces of its own.
const CONCURRENCY: usize = 8;
/// Number of sequences between two lines of progress.
const PROGRESS_EVERY: usize = 100;

/// A sequence that could not be compared.
#[derive(Debug, Error)]
pub enum RunError {
    /// The servers could not be prepared.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A sequence is invalid.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// A sequence could not start.
    #[error(transparent)]
    Run(#[from] ScriptRunError),
}

/// Both servers, prepared.
pub struct Servers {
    real: Target,
    simulated: SimulatedServer,
    simulated_target: Target,
}

/// A sequence with its responses and differences.
#[derive(Clone, Debug)]
pub struct ComparedSequence {
    /// The sequence.
    pub sequence: Sequence,
    /// Steps with the responses of the real server.
    pub real: Vec<Value>,
    /// The steps that differ.
    pub differences: Vec<Difference>,
}

impl ComparedSequence {
    /// Returns the first difference without a waiver, and its class. Later differences may follow from it.
    #[must_use]
    pub fn class(&self, is_waived: &dyn Fn(&Difference) -> bool) -> Option<(&Difference, DifferenceClass)> {
        let first = self.differences.iter().find(|difference| !is_waived(difference))?;
        Some((first, DifferenceClass::from_difference(first)))
    }
}

impl Servers {
    /// Prepares both servers.
    ///
    /// # Errors
    /// If a server rejects a CRD.
    pub async fn prepare(real: Target) -> Result<Self, RunError> {
        setup::prepare_real(&real).await?;
        let simulated_target = setup::simulated_target().map_err(SetupError::from)?;
        Ok(Self { real, simulated: setup::prepare_simulated().await?, simulated_target })
    }

    /// Runs one sequence with both servers. The name is that of an unused namespace.
    ///
    /// # Errors
    /// If it cannot start.
    pub async fn compare(&self, sequence: &Sequence, name: &str) -> Result<ComparedSequence, RunError> {
        let script = sequence.to_script(name)?;
        let transcript = run_script(&script, &self.real, RemoteServer::new(&self.real), OnFailure::Record).await?;
        let real = normalise_transcript(&script, &self.real, &transcript);
        let transcript = run_script(&script, &self.simulated_target, self.simulated.clone(), OnFailure::Record).await?;
        let simulated = normalise_transcript(&script, &self.simulated_target, &transcript);
        Ok(ComparedSequence { sequence: sequence.clone(), differences: differences(&real, &simulated), real })
    }

    /// Runs a sequence that differs a second time, and keeps only the differences that occur again: a real server sorts managed
    /// fields by times in whole seconds, so that a few responses depend on the start of a second.
    async fn compare_twice(&self, sequence: &Sequence, report: fn(String)) -> Result<ComparedSequence, RunError> {
        let index = sequence.index;
        let mut compared = self.compare(sequence, &format!("g{index}")).await?;
        if compared.differences.is_empty() {
            return Ok(compared);
        }
        let again = self.compare(sequence, &format!("g{index}-again")).await?;
        let is_repeated = |difference: &Difference| again.differences.iter().any(|other| other.step == difference.step);
        compared.differences.retain(is_repeated);
        if compared.differences.is_empty() {
            report(format!("sequence {index} differed only in the first of two runs"));
        }
        Ok(compared)
    }

    /// Runs many sequences, and reports progress. Sequences without differences are only counted.
    ///
    /// # Errors
    /// If one cannot start.
    pub async fn compare_all(
        &self,
        sequences: impl Iterator<Item = Sequence>,
        report: fn(String),
    ) -> Result<(Coverage, Vec<ComparedSequence>), RunError> {
        let compare = |sequence: Sequence| async move { self.compare_twice(&sequence, report).await };
        let mut all = stream::iter(sequences).map(compare).buffer_unordered(CONCURRENCY);
        let (mut coverage, mut found, mut done) = (Coverage::default(), Vec::new(), 0_usize);
        while let Some(compared) = all.next().await {
            let compared = compared?;
            let differing: Vec<usize> = compared.differences.iter().map(|difference| difference.step).collect();
            coverage.add(&compared.real, &differing);
            if !differing.is_empty() {
                found.push(compared);
            }
            done += 1;
            if done.is_multiple_of(PROGRESS_EVERY) {
                report(format!("{done} sequences done, {} differ", found.len()));
            }
        }
        found.sort_by_key(|compared: &ComparedSequence| compared.sequence.index);
        Ok((coverage, found))
    }
}
