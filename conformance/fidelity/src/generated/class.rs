//! What sort of difference it is, so that hundreds of them can be told in a few lines.

use std::fmt;

use serde_json::Value;

use super::coverage::{Asked, asked};
use crate::columns::places;
use crate::exchange::Difference;

/// Differences that probably have one reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    /// What was asked of what.
    pub asked: Asked,
    /// Both statuses where they differ, otherwise the first place that does, without the numbers of elements.
    pub what: String,
}

impl Class {
    /// The class of a difference.
    #[must_use]
    pub fn of(difference: &Difference) -> Self {
        let status = |side: &Value| side.pointer("/response/status").map(ToString::to_string);
        let (real, simulated) = (status(&difference.real), status(&difference.simulated));
        let what = match (real, simulated) {
            (Some(real), Some(simulated)) if real != simulated => {
                format!("status {real}, simulated {simulated}{}", cause(difference))
            }
            _ => differing(difference).into_iter().next().unwrap_or_default(),
        };
        Self { asked: asked(&difference.request), what }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.asked.verb, self.asked.kind, self.what)
    }
}

/// The first cause that the side that refuses has, without the numbers of elements.
fn cause(difference: &Difference) -> String {
    let of = |side: &Value| {
        let cause = side.pointer("/response/body/details/causes/0")?;
        let part = |name: &str| cause.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let field: String = part("field").chars().filter(|character| !character.is_ascii_digit()).collect();
        Some(format!(", {field} {}", part("reason")))
    };
    of(&difference.real).or_else(|| of(&difference.simulated)).unwrap_or_default()
}

/// Every place at which a difference is, without the numbers of elements.
#[must_use]
pub fn differing(difference: &Difference) -> Vec<String> {
    let places = places(&difference.real, &difference.simulated);
    let mut general: Vec<String> = places.into_iter().map(|(place, _, _)| generalised(&place)).collect();
    general.dedup();
    general
}

fn generalised(place: &str) -> String {
    let part = |part: &str| match part.parse::<usize>() {
        Ok(_) => "*".to_owned(),
        Err(_) => part.to_owned(),
    };
    place.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn elements_of_lists_are_one_place_and_statuses_come_first() {
        let difference = |real: Value, simulated: Value| Difference {
            step: 1,
            about: String::new(),
            request: json!({"method": "GET", "path": "/api/v1/namespaces/x/configmaps/a"}),
            real,
            simulated,
        };
        let body = |items: Value| json!({"response": {"status": 200, "body": {"items": items}}});
        let found = Class::of(&difference(body(json!([1, 2])), body(json!([3, 4]))));
        assert_eq!(found.to_string(), "get configmaps: /response/body/items/*");
        let status = |status: u16| json!({"response": {"status": status, "body": status}});
        let found = Class::of(&difference(status(200), status(404)));
        assert_eq!(found.to_string(), "get configmaps: status 200, simulated 404");
    }
}
