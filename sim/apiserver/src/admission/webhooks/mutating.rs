//! Mutating webhooks: called one after the other, each with the object that the one before left.
//!
//! After a change, the webhooks with the reinvocation policy `IfNeeded` that were called before it are called once more.

use std::collections::BTreeSet;

use serde_json::Value;

use super::configured::{Webhook, webhooks};
use super::denial::denied;
use super::reply::Reply;
use super::{CallFailure, add_warnings, apply_failure_policy, find_reviewed_target, is_exempt, prepare_call, review};
use crate::admission::attributes::{Attributes, Objects};
use crate::http::error::ApiError;
use crate::object::json_patch;
use crate::registry::resource::Target;

/// Largest number of rounds.
const ROUNDS_MAX: usize = 2;

/// Reads an object that a webhook changed, in the version of its review, as an object of the request.
pub(crate) type ReadObject<'a> = &'a dyn Fn(&Target, Value) -> Result<Value, String>;

/// State of the rounds of one write.
#[derive(Default)]
pub(crate) struct MutatingRounds {
    round: usize,
    /// Webhooks that may be called again, and were called since the last change.
    called: BTreeSet<String>,
    /// Webhooks to call again.
    repeated: BTreeSet<String>,
    output: Option<Value>,
    has_changed: bool,
}

impl MutatingRounds {
    /// True if an object was changed.
    pub(crate) fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// Calls the matching webhooks with the new object of a create or update, which they may change. Before a further round
    /// the caller repeats the admission that comes before webhooks.
    pub(crate) fn mutate(
        &mut self,
        attributes: &Attributes<'_>,
        object: &mut Value,
        old: Option<&Value>,
        read: ReadObject<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        if is_exempt(attributes) {
            return Ok(());
        }
        if self.round > 0 && self.output.as_ref() != Some(object) {
            self.repeat_called();
        }
        for webhook in webhooks(attributes.store, "mutatingwebhookconfigurations") {
            let objects = Objects { new: Some(object), old };
            let Some(target) = find_reviewed_target(attributes, &webhook, objects)? else { continue };
            if self.round > 0 && !self.repeated.contains(&webhook.id) {
                continue;
            }
            let outcome = call(attributes, &webhook, &target, objects, self.round, warnings);
            let changed = match outcome.and_then(|reply| patch(attributes, &target, object, &reply, read)) {
                Ok(changed) => changed.filter(|changed| changed != object),
                Err(failure) => {
                    apply_failure_policy(&webhook, failure)?;
                    None
                }
            };
            if let Some(changed) = changed {
                *object = changed;
                self.has_changed = true;
                self.repeat_called();
            }
            if webhook.is_reinvocable() {
                self.called.insert(webhook.id);
            }
        }
        self.output = Some(object.clone());
        Ok(())
    }

    fn repeat_called(&mut self) {
        self.repeated.append(&mut self.called);
    }

    /// Begins the next round, if there is one.
    pub(crate) fn begin_next(&mut self) -> bool {
        self.round += 1;
        self.has_changed && self.round < ROUNDS_MAX
    }
}

/// Calls the matching mutating webhooks for a write without a new object. They cannot change anything.
pub(crate) fn review_delete(
    attributes: &Attributes<'_>,
    old: &Value,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    if is_exempt(attributes) {
        return Ok(());
    }
    let objects = Objects { new: None, old: Some(old) };
    for webhook in webhooks(attributes.store, "mutatingwebhookconfigurations") {
        let Some(target) = find_reviewed_target(attributes, &webhook, objects)? else { continue };
        let outcome = call(attributes, &webhook, &target, objects, 0, warnings).and_then(|reply| {
            if read_patch(&reply)?.is_none() {
                return Ok(());
            }
            let name = Value::from(webhook.name());
            let reason = format!(
                "admission webhook {name} attempted to modify the object, which is not supported for this operation"
            );
            Err(CallFailure::Rejected(ApiError::internal(&reason)))
        });
        outcome.or_else(|failure| apply_failure_policy(&webhook, failure))?;
    }
    Ok(())
}

/// Calls one webhook. The reply allows the write.
fn call(
    attributes: &Attributes<'_>,
    webhook: &Webhook<'_>,
    target: &Target,
    objects: Objects<'_>,
    round: usize,
    warnings: &mut Vec<String>,
) -> Result<Reply, CallFailure> {
    let prepared = prepare_call(attributes, webhook, target, objects, round)?;
    let Some(answer) = prepared.answer(attributes) else {
        return Err(CallFailure::Rejected(ApiError::AwaitsWebhooks(vec![prepared.call])));
    };
    let reply = prepared.read(answer, true)?;
    add_warnings(warnings, &reply);
    if reply.is_allowed {
        return Ok(reply);
    }
    Err(CallFailure::Rejected(denied(webhook.name(), reply.status.as_ref())))
}

/// Returns the operations of a patch. `None` if there are none.
fn read_patch(reply: &Reply) -> Result<Option<Value>, CallFailure> {
    if reply.patch.is_empty() {
        return Ok(None);
    }
    let undecodable =
        |reason: String| CallFailure::Failed(format!("received undecodable patch in webhook response: {reason}"));
    let operations = crate::encoding::yaml::read_json(&reply.patch).map_err(undecodable)?;
    match &operations {
        Value::Array(list) if list.is_empty() => Ok(None),
        Value::Null => Ok(None),
        Value::Array(_) if reply.patch_type != "JSONPatch" => {
            Err(CallFailure::Failed(format!("unsupported patch type {:?}", reply.patch_type)))
        }
        Value::Array(_) => Ok(Some(operations)),
        other => {
            let kind = crate::registry::types::decode::json_type_name(other);
            Err(undecodable(format!("json: cannot unmarshal {kind} into Go value of type jsonpatch.Patch")))
        }
    }
}

/// Returns the object that a reply changes. `None` if it has no patch.
fn patch(
    attributes: &Attributes<'_>,
    target: &Target,
    object: &Value,
    reply: &Reply,
    read: ReadObject<'_>,
) -> Result<Option<Value>, CallFailure> {
    let Some(operations) = read_patch(reply)? else { return Ok(None) };
    let internal = |reason: String| CallFailure::Rejected(ApiError::internal(&reason));
    let patched = json_patch::apply(&review::in_version(attributes, target, object), &operations).map_err(internal)?;
    read(target, patched).map(Some).map_err(internal)
}
