//! Admission webhooks: which are called for a write, with which review, and what their answers mean.
//!
//! Nothing is sent here. A webhook whose answer is missing ends the request with [`ApiError::AwaitsWebhooks`].

pub(crate) mod address;
mod conditions;
mod configured;
mod denial;
pub(crate) mod mutating;
pub(crate) mod reply;
mod review;
pub(crate) mod validating;

use serde_json::Value;

use self::configured::Webhook;
use self::reply::Reply;
use super::attributes::{Attributes, Objects};
use super::matching::{find_matching_target, matches_selectors};
use crate::http::error::ApiError;
use crate::http::webhook_call::{WebhookAnswer, WebhookCall};
use crate::registry::resource::Target;

/// Failure of a webhook that is called.
enum CallFailure {
    /// The webhook denied the request, or the request cannot be made at all.
    Rejected(ApiError),
    /// The call failed: the failure policy decides.
    Failed(String),
}

/// Kinds whose writes call no webhooks, because a wrong configuration could otherwise not be repaired.
const EXEMPT: [&str; 6] = [
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
];

fn is_exempt(attributes: &Attributes<'_>) -> bool {
    attributes.kind.group == configured::GROUP && EXEMPT.contains(&attributes.kind.kind.as_str())
}

/// Returns the resource in the version in which a webhook reviews a write. `None` if the webhook does not review it.
fn find_reviewed_target(
    attributes: &Attributes<'_>,
    webhook: &Webhook<'_>,
    objects: Objects<'_>,
) -> Result<Option<Target>, ApiError> {
    if !matches_selectors(attributes, webhook.settings, objects) {
        return Ok(None);
    }
    let Some(target) = find_matching_target(attributes, webhook.rules(), webhook.matches_equivalents()) else {
        return Ok(None);
    };
    let is_selected = conditions::are_met(attributes, webhook, &target, objects)?;
    Ok(is_selected.then_some(target))
}

/// A call with its answer, if there is one already.
struct PreparedCall {
    call: WebhookCall,
    review_version: &'static str,
    /// Answer that needs no call: its Service cannot be resolved.
    failure: Option<String>,
}

/// Prepares the review of a write by a webhook.
fn prepare_call(
    attributes: &Attributes<'_>,
    webhook: &Webhook<'_>,
    target: &Target,
    objects: Objects<'_>,
    round: usize,
) -> Result<PreparedCall, CallFailure> {
    // Only an object that an older version of this server has stored has other side effects.
    if attributes.dry_run && !matches!(webhook.text("/sideEffects"), "None" | "NoneOnDryRun") {
        let message = format!("admission webhook {:?} does not support dry run", webhook.name());
        return Err(CallFailure::Rejected(ApiError::bad_request(message)));
    }
    let review_version = webhook.review_version().ok_or_else(|| {
        let reason =
            "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
        CallFailure::Failed(reason.to_owned())
    })?;
    let request = review::request(attributes, target, objects);
    let (id, body) = review::identify(webhook, round, review_version, request);
    let address = address::resolve(attributes.store, &webhook.settings["clientConfig"], webhook.timeout());
    let failure = address.failure;
    let call = WebhookCall {
        id,
        url: address.url,
        host: address.host,
        port: address.port,
        server_name: address.server_name,
        ca_bundle: webhook.ca_bundle(),
        timeout: webhook.timeout(),
        body: body.into(),
    };
    Ok(PreparedCall { call, review_version, failure })
}

impl PreparedCall {
    /// Returns the answer. `None` if the webhook must be called first.
    fn answer(&self, attributes: &Attributes<'_>) -> Option<WebhookAnswer> {
        let failed = self.failure.as_ref().map(|failure| Err(failure.clone()));
        failed.or_else(|| attributes.answers.get(&self.call.id).cloned())
    }

    /// Interprets an answer.
    fn read(&self, answer: WebhookAnswer, mutates: bool) -> Result<Reply, CallFailure> {
        let reply = answer.map_err(|error| {
            CallFailure::Failed(format!("failed to call webhook: Post {:?}: {error}", self.call.url))
        })?;
        let read = reply::read(&reply, self.review_version)
            .map_err(|error| CallFailure::Failed(format!("failed to call webhook: {error}")))?;
        reply::verify(&self.call.id, self.review_version, mutates, &read)
            .map_err(|error| CallFailure::Failed(format!("received invalid webhook response: {error}")))
    }
}

/// Decides a failed call by the failure policy: an error, or nothing if the failure is ignored.
fn apply_failure_policy(webhook: &Webhook<'_>, failure: CallFailure) -> Result<(), ApiError> {
    match failure {
        CallFailure::Rejected(error) => Err(error),
        CallFailure::Failed(_) if webhook.ignores_failures() => Ok(()),
        CallFailure::Failed(reason) => {
            Err(ApiError::internal(&format!("failed calling webhook {}: {reason}", Value::from(webhook.name()))))
        }
    }
}

/// Adds warnings of a webhook, without repetitions.
fn add_warnings(warnings: &mut Vec<String>, reply: &Reply) {
    for warning in &reply.warnings {
        if !warning.is_empty() && !warnings.contains(warning) {
            warnings.push(warning.clone());
        }
    }
}
