//! One generated sequence.

use serde_json::{Value, json};
use sindri_record::script::{Script, ScriptError};

use super::compose::compose;
use super::random::RandomSource;
use super::{client_side_apply, protobuf_variants};

/// A generated sequence of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// Seed of the run.
    pub seed: u64,
    /// Number of the sequence in the run.
    pub index: u64,
    /// Steps, in the language of exchanges.
    pub steps: Vec<Value>,
}

impl Sequence {
    /// Generates the sequence with this number.
    #[must_use]
    pub fn generate(seed: u64, index: u64, requests: usize) -> Self {
        let mut steps = compose(&mut RandomSource::new(seed, index), requests);
        client_side_apply::vary(seed, index, &mut steps);
        protobuf_variants::vary(seed, index, &mut steps);
        Self { seed, index, steps }
    }

    /// Returns the sequence with other steps.
    #[must_use]
    pub fn with_steps(&self, steps: Vec<Value>) -> Self {
        Self { steps, ..self.clone() }
    }

    /// Converts the sequence to a script; the name is that of its namespace.
    ///
    /// # Errors
    /// If a step is invalid.
    pub fn to_script(&self, name: &str) -> Result<Script, ScriptError> {
        Script::from_json(name, &self.to_json())
    }

    /// Converts the sequence to JSON in the language of exchanges.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let about = format!("The generated sequence {} of seed {}.", self.index, self.seed);
        json!({"about": about, "steps": self.steps})
    }
}
