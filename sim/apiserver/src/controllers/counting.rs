//! Controllers that count: the usage of resource quotas, and the healthy pods of pod disruption budgets.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::admission::disruption_budget::budget_counts;
use crate::admission::quota::quota_usage;
use crate::object::conditions::set_condition;
use crate::object::fields::format_timestamp;
use crate::object::key::StoredKey;
use crate::state::server_state::ServerState;
use crate::storage::journal::{Attribution, Verb};
use crate::writes::tracked::write_tracked;

/// Updates the status of a resource quota or a pod disruption budget.
pub(crate) fn update_counts(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    let Some(live) = state.store.find_key(key).cloned() else { return };
    let mut object = Value::clone(&live);
    if key.plural == "resourcequotas" {
        let hard = live.pointer("/spec/hard").cloned().unwrap_or_else(|| json!({}));
        let used = quota_usage(&state.store, key.namespace.as_deref().unwrap_or_default(), &live);
        object["status"] = json!({"hard": hard, "used": used});
    } else {
        let counts = budget_counts(&state.store, &live);
        let allowed = counts.allowed();
        let generation = live.pointer("/metadata/generation").cloned().unwrap_or_default();
        let timestamp = format_timestamp(now);
        let reason = if allowed > 0 { "SufficientPods" } else { "InsufficientPods" };
        set_condition(&mut object, &timestamp, "DisruptionAllowed", allowed > 0, reason, "");
        for condition in object.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten() {
            condition["observedGeneration"] = generation.clone();
        }
        object["status"]["currentHealthy"] = json!(counts.healthy);
        object["status"]["desiredHealthy"] = json!(counts.desired);
        object["status"]["disruptionsAllowed"] = json!(allowed);
        object["status"]["expectedPods"] = json!(counts.expected);
        object["status"]["observedGeneration"] = generation;
    }
    let mut attribution = Attribution::controller("counting-controller", Verb::Update);
    attribution.subresource = "status";
    write_tracked(state, now, &attribution, "kube-controller-manager", key, &object);
}
