//! Plays sequences to both servers and compares what they say.

use futures_util::{StreamExt, stream};
use serde_json::Value;
use sindri_record::play::{Impossible, PlayError, play};
use sindri_record::recording::normalised;
use sindri_record::script::ScriptError;
use sindri_record::server::Connected;
use sindri_record::target::Target;
use thiserror::Error;

use super::class::Class;
use super::coverage::Coverage;
use super::ground::{self, GroundError};
use super::sequence::Sequence;
use crate::exchange::{Difference, differences};
use crate::simulated::Simulated;

/// Sequences that take place at the same time. Each has namespaces of its own.
const AT_ONCE: usize = 8;
/// Every how many sequences it is told how far it is.
const PROGRESS_EVERY: usize = 100;

/// A sequence that could not be compared.
#[derive(Debug, Error)]
pub enum RunError {
    /// The servers could not be prepared.
    #[error(transparent)]
    Ground(#[from] GroundError),
    /// A sequence makes no sense.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// A sequence did not begin.
    #[error(transparent)]
    Play(#[from] PlayError),
}

/// Both servers, ready.
pub struct Servers {
    real: Target,
    simulated: Simulated,
    simulated_target: Target,
}

/// What came of a sequence.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The sequence.
    pub sequence: Sequence,
    /// What the real server said.
    pub real: Vec<Value>,
    /// The steps that differ.
    pub differences: Vec<Difference>,
}

impl Compared {
    /// The class of the first difference that is not excused. What follows it may follow from it.
    #[must_use]
    pub fn class(&self, is_excused: &dyn Fn(&Difference) -> bool) -> Option<(&Difference, Class)> {
        let first = self.differences.iter().find(|difference| !is_excused(difference))?;
        Some((first, Class::of(first)))
    }
}

impl Servers {
    /// Prepares both.
    ///
    /// # Errors
    /// When one of them refuses what sequences need.
    pub async fn prepare(real: Target) -> Result<Self, RunError> {
        ground::real(&real).await?;
        let simulated_target = ground::simulated_target().map_err(GroundError::from)?;
        Ok(Self { real, simulated: ground::simulated().await?, simulated_target })
    }

    /// Plays one sequence to both. The name is that of a namespace that nobody used before.
    ///
    /// # Errors
    /// When it cannot begin.
    pub async fn compare(&self, sequence: &Sequence, name: &str) -> Result<Compared, RunError> {
        let script = sequence.script(name)?;
        let played = play(&script, &self.real, Connected::new(&self.real), Impossible::IsRecorded).await?;
        let real = normalised(&script, &self.real, &played);
        let played = play(&script, &self.simulated_target, self.simulated.clone(), Impossible::IsRecorded).await?;
        let simulated = normalised(&script, &self.simulated_target, &played);
        Ok(Compared { sequence: sequence.clone(), differences: differences(&real, &simulated), real })
    }

    /// Plays a sequence that differs once more, and keeps the differences that come back: a real server writes times in whole
    /// seconds and puts managers in their order, so that a few answers depend on when a second begins.
    async fn compare_for_sure(&self, sequence: &Sequence, report: fn(String)) -> Result<Compared, RunError> {
        let index = sequence.index;
        let mut compared = self.compare(sequence, &format!("g{index}")).await?;
        if compared.differences.is_empty() {
            return Ok(compared);
        }
        let again = self.compare(sequence, &format!("g{index}-again")).await?;
        let came_back = |difference: &Difference| again.differences.iter().any(|other| other.step == difference.step);
        compared.differences.retain(came_back);
        if compared.differences.is_empty() {
            report(format!("sequence {index} differed once, and not when it was played again"));
        }
        Ok(compared)
    }

    /// Plays many, and tells how far it is. What does not differ is counted and forgotten.
    ///
    /// # Errors
    /// When one cannot begin.
    pub async fn compare_all(
        &self,
        sequences: impl Iterator<Item = Sequence>,
        report: fn(String),
    ) -> Result<(Coverage, Vec<Compared>), RunError> {
        let compare = |sequence: Sequence| async move { self.compare_for_sure(&sequence, report).await };
        let mut all = stream::iter(sequences).map(compare).buffer_unordered(AT_ONCE);
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
                report(format!("played {done} sequences, {} differ", found.len()));
            }
        }
        found.sort_by_key(|compared: &Compared| compared.sequence.index);
        Ok((coverage, found))
    }
}
