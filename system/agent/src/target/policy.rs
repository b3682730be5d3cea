//! Policy of one stack: annotations of the stack at the broker, which override the agent's settings.

use std::collections::BTreeMap;
use std::time::Duration;

use sindri_model::policy::{DriftMode, PolicyValue};
use sindri_model::{IGNORE_ANNOTATION, ServiceAccount};

use crate::settings::{Brake, Settings};

/// Time limit without an annotation.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(15 * 60);

/// Policy of one stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectivePolicy {
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
    /// ServiceAccount as which the agent writes; `None` for the agent's own permissions.
    pub service_account: Option<ServiceAccount>,
    /// Annotations with invalid values, each with the reason. Nothing of the stack is written while there are any: what
    /// they were meant to prevent is not known.
    pub problems: Vec<String>,
    /// The same for annotations that do not matter to a removal.
    pub apply_problems: Vec<String>,
}

impl EffectivePolicy {
    /// Reads the policy from a stack's annotations.
    pub fn from_annotations(settings: &Settings, annotations: &BTreeMap<String, String>) -> Self {
        let mut policy = Self {
            drift: settings.drift,
            brake: settings.brake,
            ignore: String::new(),
            is_suspended: false,
            releases_on_removal: false,
            timeout: TIMEOUT_DEFAULT,
            service_account: settings.default_service_account.clone(),
            problems: Vec::new(),
            apply_problems: Vec::new(),
        };
        for (key, value) in annotations {
            if let Err(problem) = policy.set(key, value, &settings.name) {
                policy.problems.push(problem);
            }
        }
        policy
    }

    /// Returns the problems because of which nothing is written.
    pub fn find_problems(&self, is_removal: bool) -> Vec<String> {
        let of_apply = self.apply_problems.iter().filter(|_| !is_removal);
        self.problems.iter().chain(of_apply).cloned().collect()
    }

    /// Applies one annotation for the agent of this name.
    fn set(&mut self, key: &str, value: &str, agent: &str) -> Result<(), String> {
        let parsed = match PolicyValue::parse(key, value) {
            // Brokers of earlier versions accepted every value.
            Err(problem) if key == IGNORE_ANNOTATION => {
                self.apply_problems.push(problem);
                None
            }
            parsed => parsed?,
        };
        match parsed {
            Some(PolicyValue::Drift(drift)) => self.drift = drift,
            Some(PolicyValue::Brake(is_on)) => self.brake.is_on = is_on,
            Some(PolicyValue::BrakeObjects(count)) => self.brake.objects = count,
            Some(PolicyValue::BrakePercent(percent)) => self.brake.percent = percent,
            Some(PolicyValue::Suspend(suspension)) => self.is_suspended = suspension.includes(agent),
            Some(PolicyValue::ReleasesOnRemoval(releases)) => self.releases_on_removal = releases,
            Some(PolicyValue::ServiceAccount(account)) => self.service_account = Some(account),
            Some(PolicyValue::Timeout(timeout)) => self.timeout = timeout,
            Some(PolicyValue::Ignore(_)) => value.clone_into(&mut self.ignore),
            // Not an annotation of the policy.
            None => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_override_the_settings_and_invalid_values_are_problems() {
        let settings = Settings::new("east".into(), "east".into());
        let read = |pairs: &[(&str, &str)]| {
            let annotations = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            EffectivePolicy::from_annotations(&settings, &annotations)
        };
        let plain = read(&[("sindri.dev/team", "shop")]);
        assert_eq!((plain.drift, plain.brake, plain.problems), (DriftMode::Correct, Brake::default(), vec![]));
        let own = read(&[("sindri.dev/drift", "detect"), ("sindri.dev/brake-percent", "90")]);
        assert_eq!((own.drift, own.brake.percent, own.problems), (DriftMode::Detect, 90, vec![]));
        let suspended = |value: &str| read(&[("sindri.dev/suspend", value)]).is_suspended;
        assert!(suspended("true") && suspended("west, east") && !suspended("west") && !suspended("false"));
        assert!(read(&[("sindri.dev/removal", "release")]).releases_on_removal);
        let account = read(&[("sindri.dev/service-account", "shop/deployer")]).service_account;
        assert_eq!(account, "shop/deployer".parse().ok());
        let invalid =
            read(&[("sindri.dev/drift", "maybe"), ("sindri.dev/removal", "keep"), ("sindri.dev/ignore", "spec")]);
        assert_eq!((invalid.drift, invalid.find_problems(false).len()), (DriftMode::Correct, 3));
        assert_eq!(invalid.find_problems(true).len(), 2, "ignored fields do not matter to a removal");
    }
}
