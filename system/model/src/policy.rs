//! Policy annotations of stacks: their names, and their values.
//!
//! The broker rejects an annotation whose value cannot be parsed, and an agent writes nothing of a stack that has one.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::ignored_fields::{IGNORE_ANNOTATION, IgnoredFields};
use crate::service_account::ServiceAccount;

/// `off`, `detect` or `correct`.
pub const DRIFT_ANNOTATION: &str = "sindri.dev/drift";
/// `on` or `off`.
pub const BRAKE_ANNOTATION: &str = "sindri.dev/brake";
/// Number of objects that may always be deleted in one pass.
pub const BRAKE_OBJECTS_ANNOTATION: &str = "sindri.dev/brake-objects";
/// Percentage of objects that may always be deleted in one pass.
pub const BRAKE_PERCENT_ANNOTATION: &str = "sindri.dev/brake-percent";
/// `true`, or names of agents separated by commas, on whose clusters nothing of the stack is written.
pub const SUSPEND_ANNOTATION: &str = "sindri.dev/suspend";
/// `delete`, or `release` to keep the objects of the stack when it is removed.
pub const REMOVAL_ANNOTATION: &str = "sindri.dev/removal";
/// `namespace/name` of the ServiceAccount with whose permissions the stack is written.
pub const SERVICE_ACCOUNT_ANNOTATION: &str = "sindri.dev/service-account";
/// Time limit of a pass, and of waiting for objects and stacks that others depend on: `90s`, `10m`, `1h`.
pub const TIMEOUT_ANNOTATION: &str = "sindri.dev/timeout";

/// Longest time limit.
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Treatment of objects that differ from the revision that was applied to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriftMode {
    /// Do not look for drift: only new revisions are applied.
    Off,
    /// Report drift and leave the objects as they are.
    Detect,
    /// Apply the objects again.
    #[default]
    Correct,
}

/// Clusters on which a stack is suspended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Suspension {
    /// All of them, or none.
    Everywhere(bool),
    /// Those of these agents.
    Agents(Vec<String>),
}

impl Suspension {
    /// Returns true if the stack is suspended on the cluster of this agent.
    pub fn includes(&self, agent: &str) -> bool {
        match self {
            Self::Everywhere(is_suspended) => *is_suspended,
            Self::Agents(names) => names.iter().any(|name| name == agent),
        }
    }

    /// Returns the suspension with the clusters of some agents, and without those of others. One of every cluster stays.
    pub fn change(self, suspended: &[String], resumed: &[String]) -> Self {
        let mut names = match self {
            Self::Everywhere(true) => return self,
            Self::Everywhere(false) => Vec::new(),
            Self::Agents(names) => names,
        };
        names.extend_from_slice(suspended);
        let resumed: BTreeSet<&String> = resumed.iter().collect();
        names.retain(|name| !resumed.contains(name));
        names.sort();
        names.dedup();
        if names.is_empty() { Self::Everywhere(false) } else { Self::Agents(names) }
    }

    /// Returns the value of the annotation; `None` if the stack is suspended nowhere. The error says that it would not have this
    /// meaning.
    pub fn to_value(&self) -> Result<Option<String>, String> {
        let value = match self {
            Self::Everywhere(false) => return Ok(None),
            Self::Everywhere(true) => "true".to_owned(),
            Self::Agents(names) => names.join(","),
        };
        match parse_suspension(&value) {
            Some(parsed) if parsed == *self => Ok(Some(value)),
            _ => Err(format!("{value:?} is not a list of names of agents: a name has a comma or another meaning")),
        }
    }
}

/// Parsed value of a policy annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyValue {
    /// Treatment of drift.
    Drift(DriftMode),
    /// True if the brake on deletions is used.
    Brake(bool),
    /// Number of objects that the brake always lets pass.
    BrakeObjects(usize),
    /// Percentage of objects that the brake always lets pass.
    BrakePercent(u8),
    /// Clusters on which the stack is suspended.
    Suspend(Suspension),
    /// True if a removal keeps the objects.
    ReleasesOnRemoval(bool),
    /// ServiceAccount with whose permissions the stack is written.
    ServiceAccount(ServiceAccount),
    /// Time limit of a pass.
    Timeout(Duration),
    /// Fields of every object that are left to other field managers.
    Ignore(IgnoredFields),
}

impl PolicyValue {
    /// Parses the value of an annotation; `None` for an annotation that is not listed here. The error names the annotation.
    pub fn parse(key: &str, value: &str) -> Result<Option<Self>, String> {
        let expected = |values: &str| format!("{key}: {value:?} is not {values}");
        Ok(Some(match (key, value) {
            (DRIFT_ANNOTATION, "off") => Self::Drift(DriftMode::Off),
            (DRIFT_ANNOTATION, "detect") => Self::Drift(DriftMode::Detect),
            (DRIFT_ANNOTATION, "correct") => Self::Drift(DriftMode::Correct),
            (DRIFT_ANNOTATION, _) => return Err(expected("off, detect or correct")),
            (BRAKE_ANNOTATION, "on") => Self::Brake(true),
            (BRAKE_ANNOTATION, "off") => Self::Brake(false),
            (BRAKE_ANNOTATION, _) => return Err(expected("on or off")),
            (BRAKE_OBJECTS_ANNOTATION, count) => {
                Self::BrakeObjects(count.parse().map_err(|_| expected("a number of objects"))?)
            }
            (BRAKE_PERCENT_ANNOTATION, percent) => {
                let percent = percent.parse().ok().filter(|percent| *percent <= 100);
                Self::BrakePercent(percent.ok_or_else(|| expected("a percentage from 0 to 100"))?)
            }
            (SUSPEND_ANNOTATION, agents) => {
                Self::Suspend(parse_suspension(agents).ok_or_else(|| expected("true, false or names of agents"))?)
            }
            (REMOVAL_ANNOTATION, "delete") => Self::ReleasesOnRemoval(false),
            (REMOVAL_ANNOTATION, "release") => Self::ReleasesOnRemoval(true),
            (REMOVAL_ANNOTATION, _) => return Err(expected("delete or release")),
            (SERVICE_ACCOUNT_ANNOTATION, account) => {
                Self::ServiceAccount(account.parse().map_err(|error| format!("{key}: {error}"))?)
            }
            (TIMEOUT_ANNOTATION, timeout) => {
                let timeout = parse_duration(timeout);
                Self::Timeout(timeout.ok_or_else(|| expected("a time from 1s to 24h, such as 90s, 10m or 1h"))?)
            }
            (IGNORE_ANNOTATION, fields) => {
                Self::Ignore(IgnoredFields::parse(fields).map_err(|error| error.to_string())?)
            }
            _ => return Ok(None),
        }))
    }
}

fn parse_suspension(text: &str) -> Option<Suspension> {
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    match names.as_slice() {
        _ if names.iter().any(String::is_empty) => None,
        [name] if name.eq_ignore_ascii_case("true") => Some(Suspension::Everywhere(true)),
        [name] if name.eq_ignore_ascii_case("false") => Some(Suspension::Everywhere(false)),
        _ => Some(Suspension::Agents(names)),
    }
}

/// Parses a number of seconds, minutes or hours, from one second to a day.
fn parse_duration(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        _ => return None,
    };
    let count: u64 = text.strip_suffix(unit)?.parse().ok()?;
    let parsed = Duration::from_secs(count.checked_mul(seconds)?);
    Some(parsed).filter(|parsed| !parsed.is_zero() && *parsed <= TIMEOUT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspension_is_changed_by_the_names_of_agents() {
        let agents = |names: &[&str]| Suspension::Agents(names.iter().map(|name| (*name).to_owned()).collect());
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
        let nowhere = Suspension::Everywhere(false);
        let both = nowhere.clone().change(&names(&["west", "east", "west"]), &[]);
        assert_eq!((both.to_value(), &both), (Ok(Some("east,west".to_owned())), &agents(&["east", "west"])));
        assert_eq!(both.clone().change(&names(&["south"]), &names(&["east"])), agents(&["south", "west"]));
        assert_eq!(both.change(&[], &names(&["east", "west"])), nowhere);
        assert_eq!(
            (nowhere.to_value(), Suspension::Everywhere(true).to_value()),
            (Ok(None), Ok(Some("true".to_owned())))
        );
        assert_eq!(Suspension::Everywhere(true).change(&[], &names(&["east"])), Suspension::Everywhere(true));
        assert!(agents(&["a,b"]).to_value().is_err() && agents(&["true"]).to_value().is_err());
    }

    #[test]
    fn a_time_limit_has_a_unit_and_is_at_most_a_day() {
        let parse = |text| parse_duration(text).map(|limit| limit.as_secs());
        assert_eq!([parse("90s"), parse("10m"), parse("24h")], [Some(90), Some(600), Some(86_400)]);
        assert!(["", "s", "90", "0s", "-1s", "25h", "1.5h", "1 h"].into_iter().all(|text| parse(text).is_none()));
    }

    #[test]
    fn a_suspension_is_everywhere_or_names_agents() {
        let is_suspended = |text: &str| parse_suspension(text).map(|suspension| suspension.includes("east"));
        for (text, expected) in
            [("true", true), ("True", true), ("false", false), ("west, east", true), ("west", false)]
        {
            assert_eq!(is_suspended(text), Some(expected), "{text}");
        }
        assert!(["", " ", "west,"].into_iter().all(|text| is_suspended(text).is_none()));
    }

    #[test]
    fn an_invalid_value_is_an_error_that_names_the_annotation() {
        for (key, value) in [
            (DRIFT_ANNOTATION, "maybe"),
            (BRAKE_ANNOTATION, "true"),
            (BRAKE_OBJECTS_ANNOTATION, "-1"),
            (BRAKE_PERCENT_ANNOTATION, "101"),
            (SUSPEND_ANNOTATION, ""),
            (REMOVAL_ANNOTATION, "Release"),
            (SERVICE_ACCOUNT_ANNOTATION, "deployer"),
            (TIMEOUT_ANNOTATION, "soon"),
            (IGNORE_ANNOTATION, "spec"),
            (IGNORE_ANNOTATION, "/metadata/name"),
        ] {
            assert!(PolicyValue::parse(key, value).unwrap_err().starts_with(key), "{key}");
        }
        assert_eq!(PolicyValue::parse("sindri.dev/team", "shop"), Ok(None));
    }
}
