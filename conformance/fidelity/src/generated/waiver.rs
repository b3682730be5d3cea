//! Waivers of intended differences in generated sequences. A line is `generated VERB RESOURCE FIELD REASON`, where `*` matches any
//! text.

use std::cell::Cell;

use super::coverage::ResourceVerb;
use super::difference_class::differing_fields;
use crate::exchange::Difference;

/// First word of the lines about generated sequences.
pub const PREFIX: &str = "generated";

/// A waiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiver {
    verb: String,
    resource: String,
    field: String,
    /// Reason.
    pub reason: String,
    /// Number of differences that it has waived.
    pub used: Cell<u64>,
}

impl Waiver {
    /// Parses a line without its first word.
    #[must_use]
    pub fn parse(rest: &str) -> Option<Self> {
        let mut parts = rest.trim().splitn(4, ' ').map(str::to_owned);
        let (verb, resource, field, reason) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        Some(Self { verb, resource, field, reason: reason.trim().to_owned(), used: Cell::new(0) })
    }

    fn covers(&self, request: &ResourceVerb, field: &str) -> bool {
        matches(&self.verb, &request.verb) && matches(&self.resource, &request.resource) && matches(&self.field, field)
    }

    /// Returns the line without the reason.
    #[must_use]
    pub fn pattern(&self) -> String {
        format!("{} {} {}", self.verb, self.resource, self.field)
    }
}

/// Returns true if every differing field has a waiver, and counts the use of these waivers.
#[must_use]
pub fn apply_waivers(waivers: &[Waiver], difference: &Difference) -> bool {
    let request = ResourceVerb::from_request(&difference.request);
    let fields = differing_fields(difference);
    let used: Option<Vec<&Waiver>> =
        fields.iter().map(|field| waivers.iter().find(|waiver| waiver.covers(&request, field))).collect();
    let is_waived = used.as_ref().is_some_and(|used| !used.is_empty());
    if is_waived {
        used.into_iter().flatten().for_each(|waiver| waiver.used.set(waiver.used.get() + 1));
    }
    is_waived
}

/// Returns true if a text matches a pattern, in which `*` matches any text.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            let ends = rest.char_indices().map(|(index, _)| index).chain([rest.len()]);
            ends.into_iter().any(|index| matches(after, &rest[index..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_difference_is_waived_only_if_all_its_fields_are() {
        let waivers = [Waiver::parse("get * */message because").unwrap()];
        let difference = |real: serde_json::Value, simulated: serde_json::Value| Difference {
            step: 1,
            about: String::new(),
            request: json!({"method": "GET", "path": "/api/v1/namespaces/x/configmaps/a"}),
            real,
            simulated,
        };
        assert!(apply_waivers(&waivers, &difference(json!({"message": 1}), json!({"message": 2}))));
        assert!(!apply_waivers(&waivers, &difference(json!({"message": 1, "a": 1}), json!({"message": 2, "a": 2}))));
        assert_eq!(waivers[0].used.get(), 1);
        assert!(Waiver::parse("get * */message").is_none());
    }
}
