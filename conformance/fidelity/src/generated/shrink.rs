//! Reduces a sequence that differs to a short one with a difference of the same class.

use serde_json::Value;

use super::difference_class::DifferenceClass;
use super::run::{ComparedSequence, RunError, Servers};
use super::sequence::Sequence;

/// Maximum number of attempts.
const ATTEMPTS_MAX: usize = 150;

/// Reduces one sequence.
pub struct Shrinker<'a> {
    servers: &'a Servers,
    class: DifferenceClass,
    best: ComparedSequence,
    attempts: usize,
}

impl<'a> Shrinker<'a> {
    /// Starts with a sequence that has a difference of this class.
    #[must_use]
    pub fn new(servers: &'a Servers, class: DifferenceClass, found: ComparedSequence) -> Self {
        Self { servers, class, best: found, attempts: 0 }
    }

    /// Returns the shortest sequence that was found.
    ///
    /// # Errors
    /// If a sequence cannot start.
    pub async fn find_shortest(mut self) -> Result<ComparedSequence, RunError> {
        self.remove_end().await?;
        self.remove_steps().await?;
        self.remove_fields().await?;
        Ok(self.best)
    }

    async fn remove_end(&mut self) -> Result<(), RunError> {
        let last =
            self.best.differences.iter().find(|difference| DifferenceClass::from_difference(difference) == self.class);
        let end = last.map_or(self.best.sequence.steps.len(), |difference| difference.step);
        let steps = self.best.sequence.steps[..end].to_vec();
        self.attempt(steps).await?;
        Ok(())
    }

    /// Removes groups of steps, then single steps, until none can be removed.
    async fn remove_steps(&mut self) -> Result<(), RunError> {
        let mut size = self.best.sequence.steps.len() / 2;
        while size > 0 {
            let mut at = 0;
            let mut removed = false;
            while at < self.best.sequence.steps.len() {
                let mut steps = self.best.sequence.steps.clone();
                steps.drain(at..(at + size).min(steps.len()));
                if !steps.is_empty() && self.attempt(steps).await? {
                    removed = true;
                } else {
                    at += size;
                }
            }
            if size > 1 || !removed {
                size /= 2;
            }
        }
        Ok(())
    }

    /// Removes single fields of bodies, top-level fields first.
    async fn remove_fields(&mut self) -> Result<(), RunError> {
        let mut index = 0;
        while index < self.best.sequence.steps.len() {
            let mut failed = 0;
            while let Some(place) = fields(self.best.sequence.steps[index].get("body")).into_iter().nth(failed) {
                let mut steps = self.best.sequence.steps.clone();
                remove(&mut steps[index], &place);
                if !self.attempt(steps).await? {
                    failed += 1;
                }
            }
            index += 1;
        }
        Ok(())
    }

    /// Runs these steps. If they have a difference of the same class, they become the best, and the result is true.
    async fn attempt(&mut self, steps: Vec<Value>) -> Result<bool, RunError> {
        if self.attempts >= ATTEMPTS_MAX {
            return Ok(false);
        }
        self.attempts += 1;
        let sequence: Sequence = self.best.sequence.with_steps(steps);
        let name = format!("g{}-{}", sequence.index, self.attempts);
        let compared = self.servers.compare(&sequence, &name).await?;
        let same =
            compared.differences.iter().any(|difference| DifferenceClass::from_difference(difference) == self.class);
        if same {
            self.best = compared;
        }
        Ok(same)
    }
}

/// Returns the pointers of all fields, the shortest first.
fn fields(value: Option<&Value>) -> Vec<String> {
    fn collect(value: &Value, place: &str, places: &mut Vec<String>) {
        let mut below = |key: &str, child: &Value| {
            let place = format!("{place}/{}", key.replace('~', "~0").replace('/', "~1"));
            places.push(place.clone());
            collect(child, &place, places);
        };
        match value {
            Value::Object(map) => map.iter().for_each(|(key, child)| below(key, child)),
            Value::Array(list) => list.iter().enumerate().for_each(|(index, child)| below(&index.to_string(), child)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut places = Vec::new();
    value.into_iter().for_each(|value| collect(value, "", &mut places));
    places.sort_by_key(|place| place.matches('/').count());
    places
}

fn remove(step: &mut Value, place: &str) {
    let Some((parent, last)) = place.rsplit_once('/') else { return };
    let last = last.replace("~1", "/").replace("~0", "~");
    match step.pointer_mut(&format!("/body{parent}")) {
        Some(Value::Object(map)) => drop(map.remove(&last)),
        Some(Value::Array(list)) => {
            if let Some(index) = last.parse::<usize>().ok().filter(|index| *index < list.len()) {
                list.remove(index);
            }
        }
        _ => {}
    }
}
