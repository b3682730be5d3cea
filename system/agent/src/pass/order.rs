//! Order of the objects of a bundle, as their annotations declare it: stages before and after the workloads, and waves. The
//! objects of a turn are applied once those of the earlier turns are ready.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use sindri_model::ObjectKey;

use super::stage::Stage;

/// Object annotation: `pre` or `post`, to be applied before or after the workloads.
pub const STAGE_ANNOTATION: &str = "sindri.dev/stage";
/// Object annotation: an integer; lower ones are applied first. Without it an object is in wave 0.
pub const WAVE_ANNOTATION: &str = "sindri.dev/wave";

/// Objects whose health was ready after the last pass.
pub type ReadyObjects = BTreeSet<Arc<ObjectKey>>;

/// Turn of an object. Bundles without these annotations have one turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    phase: Phase,
    wave: i32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Namespaces, CRDs, and what workloads need, such as configuration.
    Foundation,
    /// Objects with `sindri.dev/stage: pre`.
    Pre,
    /// Workloads and everything else.
    #[default]
    Main,
    /// Objects with `sindri.dev/stage: post`.
    Post,
}

impl Turn {
    /// Returns true if the annotations of an object declare a turn.
    pub fn is_declared(annotations: &BTreeMap<String, String>) -> bool {
        annotations.contains_key(STAGE_ANNOTATION) || annotations.contains_key(WAVE_ANNOTATION)
    }

    /// Returns the turn of an object of a bundle in which turns are declared. Namespaces and CRDs always come first: other
    /// objects of the bundle may be inside them.
    pub fn from_annotations(key: &ObjectKey, annotations: &BTreeMap<String, String>) -> Result<Self, String> {
        let is_container = Stage::from_key(key) <= Stage::Crds;
        let phase = match annotations.get(STAGE_ANNOTATION).map(String::as_str) {
            Some("pre" | "post") | None if is_container => Phase::Foundation,
            Some("pre") => Phase::Pre,
            Some("post") => Phase::Post,
            Some(other) => return Err(format!("{STAGE_ANNOTATION}: {other:?} is neither pre nor post")),
            None if Self::is_declared(annotations) || Stage::from_key(key) >= Stage::Workloads => Phase::Main,
            None => Phase::Foundation,
        };
        let wave = annotations.get(WAVE_ANNOTATION).map_or("0", String::as_str);
        let wave = wave.parse().map_err(|_| format!("{WAVE_ANNOTATION}: {wave:?} is not an integer"))?;
        Ok(Self { phase, wave: if is_container { 0 } else { wave } })
    }

    /// Returns true for the turn of the objects that workloads need.
    pub fn is_foundation(self) -> bool {
        self.phase == Phase::Foundation
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.phase {
            Phase::Foundation => f.write_str("the objects before the workloads"),
            Phase::Pre => write!(f, "stage pre, wave {}", self.wave),
            Phase::Main => write!(f, "wave {}", self.wave),
            Phase::Post => write!(f, "stage post, wave {}", self.wave),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(kind: &str, annotations: &[(&str, &str)]) -> Result<Turn, String> {
        let group = if kind == "Job" { "batch" } else { "" };
        let key = ObjectKey { group: group.into(), kind: kind.into(), namespace: None, name: "a".into() };
        let annotations = annotations.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Turn::from_annotations(&key, &annotations)
    }

    #[test]
    fn stages_are_around_the_workloads_and_waves_are_inside_stages() {
        let turns = [
            turn("Namespace", &[(STAGE_ANNOTATION, "post"), (WAVE_ANNOTATION, "7")]),
            turn("Job", &[(STAGE_ANNOTATION, "pre"), (WAVE_ANNOTATION, "-1")]),
            turn("Job", &[(STAGE_ANNOTATION, "pre")]),
            turn("Pod", &[(WAVE_ANNOTATION, "-2")]),
            turn("Pod", &[]),
            turn("ConfigMap", &[(WAVE_ANNOTATION, "3")]),
            turn("Job", &[(STAGE_ANNOTATION, "post")]),
        ];
        let turns: Vec<Turn> = turns.into_iter().collect::<Result<_, _>>().unwrap();
        assert!(turns.is_sorted_by(|earlier, later| earlier < later), "{turns:?}");
        assert_eq!(turn("Pod", &[]), Ok(Turn::default()));
    }

    #[test]
    fn an_invalid_annotation_is_an_error() {
        let invalid = turn("Pod", &[(STAGE_ANNOTATION, "before")]).unwrap_err();
        assert_eq!(invalid, "sindri.dev/stage: \"before\" is neither pre nor post");
        assert!(turn("Pod", &[(WAVE_ANNOTATION, "first")]).unwrap_err().ends_with("\"first\" is not an integer"));
    }
}
