//! A deployment with its replica sets, and the sizes that its strategy allows.

use std::sync::Arc;

use serde_json::{Value, json};

use super::owned_objects::OwnedObject;
use super::writes::number;
use crate::object::fields::{metadata, string_at};
use crate::object::key::StoredKey;

pub(super) const CONTROLLER: &str = "deployment-controller";

pub(super) const HASH_LABEL: &str = "pod-template-hash";

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";

pub(super) const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";

pub(super) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";

pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";

/// A deployment and its replica sets, as observed in one reconciliation.
pub(super) struct Rollout {
    pub(super) key: StoredKey,
    pub(super) deployment: Arc<Value>,
    pub(super) new: Option<OwnedObject>,
    /// Replica sets of older templates, oldest first.
    pub(super) old: Vec<OwnedObject>,
}

impl Rollout {
    pub(super) fn is_rolling_update(&self) -> bool {
        string_at(&self.deployment, "/spec/strategy/type") != "Recreate"
    }

    pub(super) fn desired_replicas(&self) -> i64 {
        desired_replicas(&self.deployment)
    }

    /// Returns the number of pods that may exist above the desired replicas, and the number that may be unavailable.
    fn rollout_limits(&self) -> (i64, i64) {
        let rolling_update = |field: &str| self.deployment.pointer(&format!("/spec/strategy/rollingUpdate/{field}"));
        let max_surge = resolve_share(rolling_update("maxSurge"), self.desired_replicas(), true);
        let max_unavailable = resolve_share(rolling_update("maxUnavailable"), self.desired_replicas(), false);
        if max_surge == 0 && max_unavailable == 0 { (0, 1) } else { (max_surge, max_unavailable) }
    }

    pub(super) fn max_surge(&self) -> i64 {
        if self.is_rolling_update() { self.rollout_limits().0 } else { 0 }
    }

    pub(super) fn max_unavailable(&self) -> i64 {
        if self.is_rolling_update() && self.desired_replicas() > 0 {
            self.rollout_limits().1.min(self.desired_replicas())
        } else {
            0
        }
    }

    pub(super) fn sets(&self) -> impl Iterator<Item = &OwnedObject> {
        self.old.iter().chain(&self.new)
    }

    pub(super) fn sum(&self, pointer: &str) -> i64 {
        self.sets().map(|set| number(&set.object, pointer)).sum()
    }

    /// Returns the number of replicas that the new set should have now.
    pub(super) fn new_set_size(&self) -> i64 {
        let size = self.new.as_ref().map_or(0, |set| desired_replicas(&set.object));
        if !self.is_rolling_update() {
            return self.desired_replicas();
        }
        let room = self.desired_replicas() + self.max_surge() - self.sum("/spec/replicas");
        if room <= 0 { size } else { size + room.min(self.desired_replicas() - size) }
    }

    pub(super) fn newest_revision(&self) -> i64 {
        self.old.iter().map(|set| revision(&set.object)).max().unwrap_or_default()
    }
}

pub(super) fn desired_replicas(object: &Value) -> i64 {
    object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1)
}

pub(super) fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"].get("annotations").and_then(|all| all.get(key)).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn revision(object: &Value) -> i64 {
    annotation(object, REVISION).parse().unwrap_or_default()
}

pub(super) fn set_annotation(object: &mut Value, key: &str, value: &str) {
    let annotations = metadata(object).entry("annotations").or_insert_with(|| json!({}));
    annotations[key] = json!(value);
}

/// Resolves a number, or a percentage of the replicas that is rounded up or down.
fn resolve_share(value: Option<&Value>, replicas: i64, round_up: bool) -> i64 {
    let Some(value) = value else { return 0 };
    match value.as_str().and_then(|text| text.strip_suffix('%')) {
        Some(percent) => {
            let product = replicas.saturating_mul(percent.parse().unwrap_or_default());
            if round_up { (product.saturating_add(99)) / 100 } else { product / 100 }
        }
        None => value.as_i64().unwrap_or_default(),
    }
}
