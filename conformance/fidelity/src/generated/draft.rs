//! A sequence while it is generated.

use serde_json::Value;

use super::objects::SequenceObject;
use super::random::RandomSource;

/// State of the generation of one sequence.
pub(super) struct Draft<'a> {
    pub random: &'a mut RandomSource,
    pub objects: Vec<SequenceObject>,
    pub steps: Vec<Value>,
}
