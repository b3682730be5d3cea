//! Judges the events that an agent reported, once a run is over.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use sindri_agent::STACK_ANNOTATION;
use sindri_model::ObjectKey;
use sindri_model::wire::{AgentEvent, EventStatus};

use super::violation::Violation;
use super::write_oracle::WriteOracle;
use crate::expected_object::ExpectedObject;
use crate::expected_state::{ExpectedStack, ExpectedState, SubmittedRevision};

/// Checks that every success was true: since the revision was submitted, each of its objects was at some time as declared
/// before the success was reported, and each object that it no longer declares was at some time gone. Other clients may
/// have changed an object in between.
pub fn judge_successes(
    oracle: &WriteOracle,
    cluster: &str,
    events: &[AgentEvent],
    expected: &ExpectedState,
) -> Result<(), Violation> {
    let successes = events.iter().filter(|event| event.status == EventStatus::Success);
    for event in successes {
        let mut revisions =
            expected.stacks.values().flat_map(|stack| stack.revisions().map(move |revision| (stack, revision)));
        let reported = revisions.find(|(_, revision)| revision.id == Some(event.deployment_object_id));
        let Some((stack, revision)) = reported else { continue };
        let is_missing = |object: &&ExpectedObject| {
            let is_met = |live: Option<&Value>| live.is_some_and(|live| object.is_met_by(live));
            !object.is_applied_once() && !oracle.was_ever(&object.key, revision.submitted, event.created_at, is_met)
        };
        if let Some(object) = revision.objects.iter().find(is_missing) {
            let message =
                format!("the agent of {cluster} reported a success, and {} was never as declared", object.key);
            return Err(Violation { oracle: "a-success-is-true", message });
        }
        let is_left = |key: &&ObjectKey| {
            let is_released = |live: Option<&Value>| live.is_none_or(|live| !is_owned(live, stack));
            !oracle.was_ever(key, revision.submitted, event.created_at, is_released)
        };
        if let Some(key) = list_dropped(stack, revision, expected).into_iter().find(is_left) {
            let message =
                format!("the agent of {cluster} reported a success, and {key}, which it drops, was never gone");
            return Err(Violation { oracle: "a-success-is-true", message });
        }
    }
    Ok(())
}

/// Returns true if an object has the annotation of a stack and is not left to the garbage collector.
fn is_owned(object: &Value, stack: &ExpectedStack) -> bool {
    let metadata = &object["metadata"];
    metadata["annotations"][STACK_ANNOTATION] == stack.id.to_string() && metadata["ownerReferences"].is_null()
}

/// Lists the objects that earlier revisions of a stack declare, and neither this revision, nor a later one, nor another
/// stack. Left out are objects that may stay: those with content, and those whose annotation keeps them.
fn list_dropped<'a>(
    stack: &'a ExpectedStack,
    revision: &SubmittedRevision,
    expected: &ExpectedState,
) -> BTreeSet<&'a ObjectKey> {
    let is_earlier = |other: &&SubmittedRevision| other.submitted < revision.submitted;
    let is_declared_now = |key: &ObjectKey| {
        stack.revisions().any(|other| other.submitted >= revision.submitted && other.declares(key))
            || expected.stacks.values().any(|other| other.id != stack.id && other.has_ever_declared(key))
    };
    let may_stay = |object: &ExpectedObject| {
        matches!(object.key.kind.as_str(), "Namespace" | "CustomResourceDefinition") || object.is_kept()
    };
    let kept: BTreeSet<&ObjectKey> = stack
        .revisions()
        .flat_map(|other| &other.objects)
        .filter(|object| may_stay(object))
        .map(|object| &object.key)
        .collect();
    let earlier = stack.revisions().filter(is_earlier).flat_map(|other| &other.objects).map(|object| &object.key);
    earlier.filter(|key| !kept.contains(key) && !is_declared_now(key)).collect()
}

/// Checks that no text has the content of a Secret, plain or encoded.
pub fn judge_texts<'a>(secret: &str, texts: impl IntoIterator<Item = &'a str>) -> Result<(), Violation> {
    // The last characters of the encoding depend on what follows the secret.
    let whole = secret.len() / 3 * 3;
    let encoded = BASE64.encode(&secret.as_bytes()[..whole]);
    let leaked = texts.into_iter().find(|text| text.contains(secret) || text.contains(&encoded));
    match leaked {
        Some(text) => Err(Violation { oracle: "no-secret-in-a-text", message: format!("a Secret is in: {text}") }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use serde_json::json;
    use sindri_apiserver::{Actor, StoredKey, Verb, Write};

    use super::*;
    use crate::expected_state::{ExpectedInstruction, SubmittedRevision, TargetReason};

    const ID: &str = "01b8dac5-b412-7592-a5c9-359bf5002870";
    const OTHER_ID: &str = "01b8dac5-b412-7592-a5c9-359bf5002871";

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a small number")
    }

    /// Returns the state of an operator who submitted a ConfigMap with this value.
    fn expect_value(value: &str) -> ExpectedState {
        let text = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {{n: {value}}}}}");
        let mut revision = SubmittedRevision::from_bundle(&text, at(1));
        revision.id = ID.parse().ok();
        let mut stack = ExpectedStack::new(ID.parse().expect("a valid id"));
        stack.instructions.push(ExpectedInstruction::Submit(revision));
        stack.target("east", TargetReason::Id);
        let mut expected = ExpectedState::default();
        expected.stacks.insert("shop".to_owned(), stack);
        expected
    }

    /// Returns the write with which an agent creates the ConfigMap with the value `one`.
    fn create_object() -> Write {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"n": "one"}});
        let key = StoredKey {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            plural: "configmaps".to_owned(),
            namespace: Some("default".to_owned()),
            name: "a".to_owned(),
        };
        Write {
            at: at(2),
            actor: Actor::Client { user_agent: "sindri-agent/1".to_owned(), field_manager: String::new() },
            verb: Verb::Apply,
            subresource: "",
            key: Arc::new(key),
            uid: "7".to_owned(),
            resource_version: 1,
            before: None,
            after: Some(Arc::new(object)),
        }
    }

    fn success() -> AgentEvent {
        let event = json!({
            "id": ID, "created_at": at(3), "updated_at": at(3), "agent_id": ID, "deployment_object_id": ID,
            "event_type": "DEPLOY", "status": "SUCCESS",
        });
        serde_json::from_value(event).expect("a valid event")
    }

    #[test]
    fn a_success_without_the_declared_object_is_not_true() {
        for (value, is_true) in [("one", true), ("two", false)] {
            let expected = expect_value(value);
            let mut oracle = WriteOracle::new("east");
            oracle.judge(&create_object(), &expected, |_, _| None).expect("a declared object is written");
            assert_eq!(judge_successes(&oracle, "east", &[success()], &expected).is_ok(), is_true, "{value}");
        }
    }

    #[test]
    fn a_success_is_not_true_while_a_dropped_object_exists() {
        let mut object = create_object();
        let owned = json!({"metadata": {"name": "a", "annotations": {STACK_ANNOTATION: ID}}, "data": {"n": "one"}});
        object.after = Some(Arc::new(owned));
        let mut expected = expect_value("one");
        let stack = expected.stacks.get_mut("shop").expect("the stack was added");
        let mut second =
            SubmittedRevision::from_bundle("{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}", at(4));
        second.id = OTHER_ID.parse().ok();
        stack.instructions.push(ExpectedInstruction::Submit(second));
        let b = StoredKey { name: "b".to_owned(), ..StoredKey::clone(&object.key) };
        let success =
            AgentEvent { deployment_object_id: OTHER_ID.parse().expect("a valid id"), created_at: at(9), ..success() };
        for (is_deleted, is_true) in [(true, true), (false, false)] {
            let mut oracle = WriteOracle::new("east");
            let applied = Some(Arc::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}})));
            let other =
                Write { key: Arc::new(b.clone()), at: at(5), uid: "8".to_owned(), after: applied, ..create_object() };
            let delete = Write { at: at(6), before: object.after.clone(), after: None, ..object.clone() };
            for write in [Some(&object), Some(&other), Some(&delete).filter(|_| is_deleted)].into_iter().flatten() {
                oracle.judge(write, &expected, |_, _| None).expect("the write is allowed");
            }
            let judged = judge_successes(&oracle, "east", std::slice::from_ref(&success), &expected);
            assert_eq!(judged.is_ok(), is_true, "deleted: {is_deleted}");
        }
    }

    #[test]
    fn a_secret_is_found_as_it_is_and_encoded() {
        let encoded = BASE64.encode("canary-1 and more");
        assert!(judge_texts("canary-1", ["nothing", "here: canary-1"]).is_err());
        assert!(judge_texts("canary-1", [encoded.as_str()]).is_err());
        assert!(judge_texts("canary-1", ["canary-2", ""]).is_ok());
    }
}
