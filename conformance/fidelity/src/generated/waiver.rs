//! Differences of generated sequences that are meant. A line of the waivers is
//! `generated VERB KIND PLACE REASON`, where `*` stands for anything.

use std::cell::Cell;

use super::class::differing;
use super::coverage::asked;
use crate::exchange::Difference;

/// How a line of the waivers begins that is about generated sequences.
pub const WORD: &str = "generated";

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiver {
    verb: String,
    kind: String,
    place: String,
    /// Why the servers may differ there.
    pub reason: String,
    /// How many differences it excused.
    pub used: Cell<u64>,
}

impl Waiver {
    /// Reads what follows the first word of a line.
    #[must_use]
    pub fn parse(rest: &str) -> Option<Self> {
        let mut parts = rest.trim().splitn(4, ' ').map(str::to_owned);
        let (verb, kind, place, reason) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        Some(Self { verb, kind, place, reason: reason.trim().to_owned(), used: Cell::new(0) })
    }

    fn covers(&self, verb: &str, kind: &str, place: &str) -> bool {
        fits(&self.verb, verb) && fits(&self.kind, kind) && fits(&self.place, place)
    }

    /// The line without its reason.
    #[must_use]
    pub fn pattern(&self) -> String {
        format!("{} {} {}", self.verb, self.kind, self.place)
    }
}

/// Whether every place of a difference is excused. The waivers that do so remember it.
#[must_use]
pub fn excuse(waivers: &[Waiver], difference: &Difference) -> bool {
    let asked = asked(&difference.request);
    let places = differing(difference);
    let by: Option<Vec<&Waiver>> = places
        .iter()
        .map(|place| waivers.iter().find(|waiver| waiver.covers(&asked.verb, &asked.kind, place)))
        .collect();
    let excused = by.as_ref().is_some_and(|by| !by.is_empty());
    if excused {
        by.into_iter().flatten().for_each(|waiver| waiver.used.set(waiver.used.get() + 1));
    }
    excused
}

/// Whether a text is as a pattern says, in which `*` stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            let ends = rest.char_indices().map(|(index, _)| index).chain([rest.len()]);
            ends.into_iter().any(|index| fits(after, &rest[index..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_difference_is_excused_only_if_every_place_of_it_is() {
        let waivers = [Waiver::parse("get * */message because").unwrap()];
        let difference = |real: serde_json::Value, simulated: serde_json::Value| Difference {
            step: 1,
            about: String::new(),
            request: json!({"method": "GET", "path": "/api/v1/namespaces/x/configmaps/a"}),
            real,
            simulated,
        };
        assert!(excuse(&waivers, &difference(json!({"message": 1}), json!({"message": 2}))));
        assert!(!excuse(&waivers, &difference(json!({"message": 1, "a": 1}), json!({"message": 2, "a": 2}))));
        assert_eq!(waivers[0].used.get(), 1);
        assert!(Waiver::parse("get * */message").is_none());
    }
}
