//! Policy of one stack: annotations of the stack at the broker, which override the agent's settings.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cluster::ServiceAccount;
use crate::cluster::ignore::{IGNORE_ANNOTATION, IgnoredFields};
use crate::settings::{Brake, DriftMode, Settings};

/// Stack annotation: `off`, `detect` or `correct`.
pub const DRIFT_ANNOTATION: &str = "sindri.dev/drift";
/// Stack annotation: `on` or `off`.
pub const BRAKE_ANNOTATION: &str = "sindri.dev/brake";
/// Stack annotation: number of objects that may always be deleted in one pass.
pub const BRAKE_OBJECTS_ANNOTATION: &str = "sindri.dev/brake-objects";
/// Stack annotation: percentage of objects that may always be deleted in one pass.
pub const BRAKE_PERCENT_ANNOTATION: &str = "sindri.dev/brake-percent";

/// Stack annotation: `true`, or names of agents separated by commas, on whose clusters nothing of the stack is written.
pub const SUSPEND_ANNOTATION: &str = "sindri.dev/suspend";
/// Stack annotation: `delete`, or `release` to keep the objects of the stack when it is removed.
pub const REMOVAL_ANNOTATION: &str = "sindri.dev/removal";

/// Stack annotation: `namespace/name` of the ServiceAccount with whose permissions the stack is written.
pub const SERVICE_ACCOUNT_ANNOTATION: &str = "sindri.dev/service-account";
/// Stack annotation: time limit of a pass, and of waiting for objects and stacks that others depend on: `90s`, `10m`, `1h`.
pub const TIMEOUT_ANNOTATION: &str = "sindri.dev/timeout";
/// Time limit without that annotation.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(15 * 60);
/// Longest time limit.
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Policy of one stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackPolicy {
    /// Treatment of drift.
    pub drift: DriftMode,
    /// Limit on deletions without an approval.
    pub brake: Brake,
    /// JSON pointers to fields that are ignored in every object of the stack, besides the object's own; may be empty.
    pub ignore: String,
    /// True if nothing of the stack is written; drift is still reported.
    pub is_suspended: bool,
    /// True if a removal keeps the objects, without their ownership label and annotations.
    pub releases_on_removal: bool,
    /// Time limit of a pass; after it the next pass starts from the observed state. Also the time after which a failure is
    /// reported while objects wait for others.
    pub timeout: Duration,
    /// ServiceAccount as which the agent writes; `None` for the agent's own permissions. With an invalid one nothing is
    /// written: the agent's own permissions may allow more.
    pub service_account: Result<Option<ServiceAccount>, String>,
}

impl StackPolicy {
    /// Reads the policy from a stack's annotations. An invalid value has no effect; the second result describes each.
    pub fn from_annotations(settings: &Settings, annotations: &BTreeMap<String, String>) -> (Self, Vec<String>) {
        let mut policy = Self {
            drift: settings.drift,
            brake: settings.brake,
            ignore: String::new(),
            is_suspended: false,
            releases_on_removal: false,
            timeout: TIMEOUT_DEFAULT,
            service_account: Ok(settings.default_service_account.clone()),
        };
        let mut problems = Vec::new();
        for (key, value) in annotations {
            if !policy.set(key, value, &settings.name) {
                problems.push(format!("the stack's annotation {key} is ignored: the value {value:?} is not valid"));
            }
        }
        (policy, problems)
    }

    /// Applies one annotation for the agent of this name; returns false if its value is invalid.
    fn set(&mut self, key: &str, value: &str, agent: &str) -> bool {
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
            (IGNORE_ANNOTATION, pointers) if IgnoredFields::parse(pointers).is_ok() => {
                pointers.clone_into(&mut self.ignore)
            }
            (SUSPEND_ANNOTATION, agents) => {
                self.is_suspended = agents == "true" || agents.split(',').any(|name| name.trim() == agent);
            }
            (TIMEOUT_ANNOTATION, timeout) => match parse_duration(timeout) {
                Some(timeout) => self.timeout = timeout,
                None => return false,
            },
            (SERVICE_ACCOUNT_ANNOTATION, account) => self.service_account = account.parse().map(Some),
            (REMOVAL_ANNOTATION, "delete") => self.releases_on_removal = false,
            (REMOVAL_ANNOTATION, "release") => self.releases_on_removal = true,
            (DRIFT_ANNOTATION | BRAKE_ANNOTATION | IGNORE_ANNOTATION | REMOVAL_ANNOTATION, _) => return false,
            // Not an annotation of the policy.
            _ => {}
        }
        true
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
    fn a_time_limit_has_a_unit_and_is_at_most_a_day() {
        let parse = |text| parse_duration(text).map(|limit| limit.as_secs());
        assert_eq!([parse("90s"), parse("10m"), parse("24h")], [Some(90), Some(600), Some(86_400)]);
        assert!(["", "s", "90", "0s", "-1s", "25h", "1.5h", "1 h"].into_iter().all(|text| parse(text).is_none()));
    }

    #[test]
    fn annotations_override_the_settings_and_invalid_values_are_reported_and_ignored() {
        let settings = Settings::new("east".into(), "east".into());
        let read = |pairs: &[(&str, &str)]| {
            let annotations = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            StackPolicy::from_annotations(&settings, &annotations)
        };
        let (plain, none) = read(&[("sindri.dev/team", "shop")]);
        assert_eq!((plain.drift, plain.brake, none), (DriftMode::Correct, Brake::default(), vec![]));
        let (own, none) = read(&[("sindri.dev/drift", "detect"), ("sindri.dev/brake-percent", "90")]);
        assert_eq!((own.drift, own.brake.percent, none), (DriftMode::Detect, 90, vec![]));
        let suspended = |value: &str| read(&[("sindri.dev/suspend", value)]).0.is_suspended;
        assert!(suspended("true") && suspended("west, east") && !suspended("west") && !suspended("false"));
        assert!(read(&[("sindri.dev/removal", "release")]).0.releases_on_removal);
        let account = read(&[("sindri.dev/service-account", "shop/deployer")]).0.service_account;
        assert_eq!(account, Ok("shop/deployer".parse().ok()));
        assert!(read(&[("sindri.dev/service-account", "deployer")]).0.service_account.is_err());
        let (invalid, problems) =
            read(&[("sindri.dev/drift", "maybe"), ("sindri.dev/brake-percent", "101"), ("sindri.dev/ignore", "spec")]);
        assert_eq!((invalid.drift, invalid.brake, problems.len()), (DriftMode::Correct, Brake::default(), 3));
    }
}
