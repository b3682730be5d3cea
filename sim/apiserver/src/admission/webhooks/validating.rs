//! Validating webhooks: all that match are called at once, and the first in order that rejects decides.

use super::configured::webhooks;
use super::denial::denied;
use super::{CallFailure, add_warnings, apply_failure_policy, find_reviewed_target, is_exempt, prepare_call};
use crate::admission::attributes::{Attributes, Objects};
use crate::http::error::ApiError;

/// Returns an error if a validating webhook rejects a write. Adds the warnings of webhooks.
pub(crate) fn validate(
    attributes: &Attributes<'_>,
    objects: Objects<'_>,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    if is_exempt(attributes) {
        return Ok(());
    }
    let mut matching = Vec::new();
    for webhook in webhooks(attributes.store, "validatingwebhookconfigurations") {
        if let Some(target) = find_reviewed_target(attributes, &webhook, objects)? {
            matching.push((webhook, target));
        }
    }
    let (mut answered, mut missing) = (Vec::new(), Vec::new());
    for (webhook, target) in &matching {
        let prepared = prepare_call(attributes, webhook, target, objects, 0);
        match prepared.map(|prepared| (prepared.answer(attributes), prepared)) {
            Ok((None, prepared)) => missing.push(prepared.call),
            Ok((Some(answer), prepared)) => answered.push((webhook, prepared.read(answer, false))),
            Err(failure) => answered.push((webhook, Err(failure))),
        }
    }
    if !missing.is_empty() {
        return Err(ApiError::AwaitsWebhooks(missing));
    }
    let mut decision = Ok(());
    for (webhook, answer) in answered {
        let outcome = answer.and_then(|reply| {
            add_warnings(warnings, &reply);
            if reply.is_allowed {
                Ok(())
            } else {
                Err(CallFailure::Rejected(denied(webhook.name(), reply.status.as_ref())))
            }
        });
        decision = decision.and(outcome.or_else(|failure| apply_failure_policy(webhook, failure)));
    }
    decision
}
