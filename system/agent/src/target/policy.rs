//! What may be decided differently for one stack: annotations of the stack at the broker, over the agent's settings.

use std::collections::BTreeMap;

use crate::cluster::ignore::{IGNORE_ANNOTATION, Ignored};
use crate::settings::{Brake, DriftMode, Settings};

/// `off`, `detect` or `correct`.
pub const DRIFT_ANNOTATION: &str = "sindri.dev/drift";
/// `on` or `off`.
pub const BRAKE_ANNOTATION: &str = "sindri.dev/brake";
/// So many objects may go at once.
pub const BRAKE_OBJECTS_ANNOTATION: &str = "sindri.dev/brake-objects";
/// So many of a hundred may go at once.
pub const BRAKE_PERCENT_ANNOTATION: &str = "sindri.dev/brake-percent";

/// How one stack is treated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What to do about changes that nobody declared.
    pub drift: DriftMode,
    /// When a plan waits for an approval.
    pub brake: Brake,
    /// JSON pointers that every object of the stack gets besides its own; empty for none.
    pub ignore: String,
}

impl Policy {
    /// For a stack with these annotations. What cannot be read counts for nothing, and is told.
    pub fn of(settings: &Settings, annotations: &BTreeMap<String, String>) -> (Self, Vec<String>) {
        let mut policy = Self { drift: settings.drift, brake: settings.brake, ignore: String::new() };
        let mut faults = Vec::new();
        for (key, value) in annotations {
            if !policy.read(key, value) {
                faults.push(format!("the stack's annotation {key}: {value:?} means nothing, and counts for nothing"));
            }
        }
        (policy, faults)
    }

    fn read(&mut self, key: &str, value: &str) -> bool {
        match (key, value) {
            (DRIFT_ANNOTATION, "off") => self.drift = DriftMode::Off,
            (DRIFT_ANNOTATION, "detect") => self.drift = DriftMode::Detect,
            (DRIFT_ANNOTATION, "correct") => self.drift = DriftMode::Correct,
            (BRAKE_ANNOTATION, "on") => self.brake.is_on = true,
            (BRAKE_ANNOTATION, "off") => self.brake.is_on = false,
            (BRAKE_OBJECTS_ANNOTATION, count) => match count.parse() {
                Ok(count) => self.brake.objects = count,
                Err(_) => return false,
            },
            (BRAKE_PERCENT_ANNOTATION, percent) => match percent.parse().ok().filter(|percent| *percent <= 100) {
                Some(percent) => self.brake.percent = percent,
                None => return false,
            },
            (IGNORE_ANNOTATION, pointers) if Ignored::parse(pointers).is_ok() => pointers.clone_into(&mut self.ignore),
            (DRIFT_ANNOTATION | BRAKE_ANNOTATION | IGNORE_ANNOTATION, _) => return false,
            // Not about how the agent treats it.
            _ => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_decides_over_its_agent_and_nonsense_is_told_and_counts_for_nothing() {
        let settings = Settings::new("east".into(), "east".into());
        let read = |pairs: &[(&str, &str)]| {
            let annotations = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            Policy::of(&settings, &annotations)
        };
        let (plain, none) = read(&[("sindri.dev/team", "shop")]);
        assert_eq!((plain.drift, plain.brake, none), (DriftMode::Correct, Brake::default(), vec![]));
        let (own, none) = read(&[("sindri.dev/drift", "detect"), ("sindri.dev/brake-percent", "90")]);
        assert_eq!((own.drift, own.brake.percent, none), (DriftMode::Detect, 90, vec![]));
        let (wrong, told) =
            read(&[("sindri.dev/drift", "maybe"), ("sindri.dev/brake-percent", "101"), ("sindri.dev/ignore", "spec")]);
        assert_eq!((wrong.drift, wrong.brake, told.len()), (DriftMode::Correct, Brake::default(), 3));
    }
}
