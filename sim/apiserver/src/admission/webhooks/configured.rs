//! The webhooks of the stored configurations.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;

use crate::object::fields::{array_at, string_at, value_at};
use crate::storage::store::Store;

pub(super) const GROUP: &str = "admissionregistration.k8s.io";
/// Timeout of a webhook that names none, in seconds.
const TIMEOUT_SECONDS: u64 = 10;

/// One webhook of a configuration.
pub(super) struct Webhook<'a> {
    /// Name of the configuration, name of the webhook, and its number among those with the same name.
    pub(super) id: String,
    /// Element of `webhooks` in the configuration.
    pub(super) settings: &'a Value,
}

/// Returns the webhooks of all configurations of a kind, ordered by the name of the configuration.
pub(super) fn webhooks<'a>(store: &'a Store, plural: &str) -> Vec<Webhook<'a>> {
    let configurations = store.collection(GROUP, plural).into_iter().flat_map(|collection| collection.values());
    configurations
        .flat_map(|entry| {
            let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
            array_at(&entry.object, "/webhooks").iter().map(move |settings| {
                let name = string_at(settings, "/name");
                let number = numbers.entry(name).or_default();
                let id = format!("{}/{name}/{number}", entry.key.name);
                *number += 1;
                Webhook { id, settings }
            })
        })
        .collect()
}

impl<'a> Webhook<'a> {
    pub(super) fn text(&self, pointer: &str) -> &'a str {
        string_at(self.settings, pointer)
    }

    pub(super) fn name(&self) -> &'a str {
        self.text("/name")
    }

    pub(super) fn rules(&self) -> &'a [Value] {
        array_at(self.settings, "/rules")
    }

    pub(super) fn conditions(&self) -> &'a [Value] {
        array_at(self.settings, "/matchConditions")
    }

    /// True if a rule for another version of a resource also matches.
    pub(super) fn matches_equivalents(&self) -> bool {
        self.text("/matchPolicy") != "Exact"
    }

    pub(super) fn ignores_failures(&self) -> bool {
        self.text("/failurePolicy") == "Ignore"
    }

    /// True if the webhook may be called again after a later change of the object.
    pub(super) fn is_reinvocable(&self) -> bool {
        self.text("/reinvocationPolicy") == "IfNeeded"
    }

    /// Returns the first version of reviews that both sides know.
    pub(super) fn review_version(&self) -> Option<&'static str> {
        let accepted = array_at(self.settings, "/admissionReviewVersions");
        accepted.iter().find_map(|accepted| ["v1", "v1beta1"].into_iter().find(|known| accepted == known))
    }

    pub(super) fn timeout(&self) -> Duration {
        let seconds = value_at(self.settings, "/timeoutSeconds").and_then(Value::as_u64);
        Duration::from_secs(seconds.unwrap_or(TIMEOUT_SECONDS))
    }

    /// Returns the certificate authorities in PEM.
    pub(super) fn ca_bundle(&self) -> Bytes {
        STANDARD.decode(self.text("/clientConfig/caBundle")).unwrap_or_default().into()
    }
}
