//! Classes of differences, so that hundreds of them can be summarised in a few lines.

use std::fmt;

use serde_json::Value;

use super::coverage::ResourceVerb;
use crate::exchange::Difference;
use crate::side_by_side::differing_values;

/// Class of differences that probably have the same cause.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DifferenceClass {
    /// Resource and verb of the request.
    pub request: ResourceVerb,
    /// Both statuses if they differ, otherwise the first differing field, with `*` for indexes.
    pub description: String,
}

impl DifferenceClass {
    /// Returns the class of a difference.
    #[must_use]
    pub fn from_difference(difference: &Difference) -> Self {
        let status = |side: &Value| side.pointer("/response/status").map(ToString::to_string);
        let (real, simulated) = (status(&difference.real), status(&difference.simulated));
        let description = match (real, simulated) {
            (Some(real), Some(simulated)) if real != simulated => {
                format!("status {real}, simulated {simulated}{}", first_cause(difference))
            }
            _ => differing_fields(difference).into_iter().next().unwrap_or_default(),
        };
        Self { request: ResourceVerb::from_request(&difference.request), description }
    }
}

impl fmt::Display for DifferenceClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.request.verb, self.request.resource, self.description)
    }
}

/// Returns the first cause in the error of the server that rejects the request, without indexes.
fn first_cause(difference: &Difference) -> String {
    let find = |side: &Value| {
        let cause = side.pointer("/response/body/details/causes/0")?;
        let part = |name: &str| cause.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let field: String = part("field").chars().filter(|character| !character.is_ascii_digit()).collect();
        Some(format!(", {field} {}", part("reason")))
    };
    find(&difference.real).or_else(|| find(&difference.simulated)).unwrap_or_default()
}

/// Returns the pointers of all differing fields, with `*` for indexes.
#[must_use]
pub fn differing_fields(difference: &Difference) -> Vec<String> {
    let fields = differing_values(&difference.real, &difference.simulated);
    let mut general: Vec<String> = fields.into_iter().map(|(pointer, _, _)| generalise(&pointer)).collect();
    general.dedup();
    general
}

fn generalise(pointer: &str) -> String {
    let part = |part: &str| match part.parse::<usize>() {
        Ok(_) => "*".to_owned(),
        Err(_) => part.to_owned(),
    };
    pointer.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn list_indexes_are_ignored_and_statuses_have_priority() {
        let difference = |real: Value, simulated: Value| Difference {
            step: 1,
            about: String::new(),
            request: json!({"method": "GET", "path": "/api/v1/namespaces/x/configmaps/a"}),
            real,
            simulated,
        };
        let body = |items: Value| json!({"response": {"status": 200, "body": {"items": items}}});
        let found = DifferenceClass::from_difference(&difference(body(json!([1, 2])), body(json!([3, 4]))));
        assert_eq!(found.to_string(), "get configmaps: /response/body/items/*");
        let status = |status: u16| json!({"response": {"status": status, "body": status}});
        let found = DifferenceClass::from_difference(&difference(status(200), status(404)));
        assert_eq!(found.to_string(), "get configmaps: status 200, simulated 404");
    }
}
