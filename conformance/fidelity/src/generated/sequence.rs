//! One generated sequence, as data.

use serde_json::{Value, json};
use sindri_record::script::{Script, ScriptError};

use super::compose::compose;
use super::dice::Dice;
use super::notation;

/// Requests in the order in which they are sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// The seed that it comes from.
    pub seed: u64,
    /// Its number among those of the seed.
    pub index: u64,
    /// Its steps, in the language of exchanges.
    pub steps: Vec<Value>,
}

impl Sequence {
    /// The sequence with this number.
    #[must_use]
    pub fn generate(seed: u64, index: u64, requests: usize) -> Self {
        let mut steps = compose(&mut Dice::new(seed, index), requests);
        notation::vary(seed, index, &mut steps);
        Self { seed, index, steps }
    }

    /// The same sequence with other steps.
    #[must_use]
    pub fn with_steps(&self, steps: Vec<Value>) -> Self {
        Self { steps, ..self.clone() }
    }

    /// The sequence as an exchange; the name is that of its namespace.
    ///
    /// # Errors
    /// When a step is not in the language.
    pub fn script(&self, name: &str) -> Result<Script, ScriptError> {
        Script::from_json(name, &self.written())
    }

    /// The sequence as it can be kept among the recorded exchanges.
    #[must_use]
    pub fn written(&self) -> Value {
        let about = format!("The generated sequence {} of seed {}.", self.index, self.seed);
        json!({"about": about, "steps": self.steps})
    }
}
