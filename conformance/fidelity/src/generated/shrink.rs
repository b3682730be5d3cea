//! Makes a sequence that differs as short as it can be, and still differ in the same way.

use serde_json::Value;

use super::class::Class;
use super::run::{Compared, RunError, Servers};
use super::sequence::Sequence;

/// How often a shorter one is tried.
const TRIES_MAX: usize = 150;

/// Makes shorter sequences of one difference.
pub struct Shrinker<'a> {
    servers: &'a Servers,
    class: Class,
    best: Compared,
    tries: usize,
}

impl<'a> Shrinker<'a> {
    /// Begins with a sequence that has a difference of this class.
    #[must_use]
    pub fn new(servers: &'a Servers, class: Class, found: Compared) -> Self {
        Self { servers, class, best: found, tries: 0 }
    }

    /// The shortest sequence that was found.
    ///
    /// # Errors
    /// When a sequence cannot begin.
    pub async fn shortest(mut self) -> Result<Compared, RunError> {
        self.cut_the_end().await?;
        self.take_steps_away().await?;
        self.take_fields_away().await?;
        Ok(self.best)
    }

    async fn cut_the_end(&mut self) -> Result<(), RunError> {
        let last = self.best.differences.iter().find(|difference| Class::of(difference) == self.class);
        let end = last.map_or(self.best.sequence.steps.len(), |difference| difference.step);
        let steps = self.best.sequence.steps[..end].to_vec();
        self.attempt(steps).await?;
        Ok(())
    }

    /// Larger pieces first, single steps at the end, until nothing goes any more.
    async fn take_steps_away(&mut self) -> Result<(), RunError> {
        let mut size = self.best.sequence.steps.len() / 2;
        while size > 0 {
            let mut at = 0;
            let mut taken = false;
            while at < self.best.sequence.steps.len() {
                let mut steps = self.best.sequence.steps.clone();
                steps.drain(at..(at + size).min(steps.len()));
                if !steps.is_empty() && self.attempt(steps).await? {
                    taken = true;
                } else {
                    at += size;
                }
            }
            if size > 1 || !taken {
                size /= 2;
            }
        }
        Ok(())
    }

    /// Single fields of bodies, those on top first.
    async fn take_fields_away(&mut self) -> Result<(), RunError> {
        let mut index = 0;
        while index < self.best.sequence.steps.len() {
            let mut tried = 0;
            while let Some(place) = fields(self.best.sequence.steps[index].get("body")).into_iter().nth(tried) {
                let mut steps = self.best.sequence.steps.clone();
                remove(&mut steps[index], &place);
                if !self.attempt(steps).await? {
                    tried += 1;
                }
            }
            index += 1;
        }
        Ok(())
    }

    /// Whether these steps differ in the same way; if so they are the best.
    async fn attempt(&mut self, steps: Vec<Value>) -> Result<bool, RunError> {
        if self.tries >= TRIES_MAX {
            return Ok(false);
        }
        self.tries += 1;
        let sequence: Sequence = self.best.sequence.with_steps(steps);
        let name = format!("g{}-{}", sequence.index, self.tries);
        let compared = self.servers.compare(&sequence, &name).await?;
        let same = compared.differences.iter().any(|difference| Class::of(difference) == self.class);
        if same {
            self.best = compared;
        }
        Ok(same)
    }
}

/// The pointers of every field, the shortest first.
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
