//! Kubernetes Events about the objects of a stack: an object cannot be written or deleted, waits for an approval, has failed
//! while others wait for it, or drifts again and again.
//!
//! An Event is created once for each object, revision and message. A failure to create it is ignored: the broker has the same
//! report.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use sindri_model::{Checksum, Clock, ObjectKey, RevisionId};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::drift::PersistentDrift;
use crate::cluster::namespaces::DEFAULT_NAMESPACE;
use crate::cluster::{ApiResource, Cluster};
use crate::pass::cache::PassCache;
use crate::pass::summary::{PassError, PassSummary};

/// Most Events of one pass.
const EVENTS_MAX: usize = 10;
/// Most Events that are remembered, so that they are not created again.
const REMEMBERED_MAX: usize = 1_000;
/// Longer messages are cut, because the API server rejects them.
const MESSAGE_CHARS_MAX: usize = 1_000;
/// Longest name of the object in the name of an Event.
const NAME_CHARS_MAX: usize = 200;
/// Digits of the checksum in the name of an Event.
const CHECKSUM_CHARS: usize = 16;
/// Time limit of all Events of one pass.
const TIME_MAX: Duration = Duration::from_secs(2);
/// Component that creates the Events.
const COMPONENT: &str = "sindri-agent";

/// Content of an Event about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectEvent {
    /// Object that it is about.
    pub key: ObjectKey,
    /// Reason in one word.
    pub reason: &'static str,
    /// Message for people.
    pub message: String,
}

/// Events that were created for a stack. It may be lost: an Event that exists is not created again.
#[derive(Debug, Default)]
pub struct ObjectEvents {
    created: BTreeSet<String>,
}

impl ObjectEvents {
    /// Creates the Events that are new.
    pub async fn create_new(
        &mut self,
        cluster: &Cluster,
        clock: &Clock,
        revision: RevisionId,
        cache: &PassCache,
        events: Vec<ObjectEvent>,
    ) {
        // An Event is not worth a retry, and the report to the broker must not wait for it.
        let no_retries = CancellationToken::new();
        no_retries.cancel();
        let cluster = &cluster.with_retries_until(no_retries);
        let create_all = async {
            for event in events.into_iter().take(EVENTS_MAX) {
                let name = event_name(revision, &event);
                let Some((resource, uid)) = cache.find_object(&event.key).filter(|_| !self.created.contains(&name))
                else {
                    continue;
                };
                let object = build_event(&name, &event, resource, uid, clock);
                if let Err(error) = cluster.create_event(&object).await {
                    tracing::debug!("{error}");
                    continue;
                }
                if self.created.len() >= REMEMBERED_MAX {
                    self.created.clear();
                }
                self.created.insert(name);
            }
        };
        let _ended = timeout(TIME_MAX, create_all).await;
    }
}

/// Returns the Events about the result of a pass.
pub fn find_object_events(
    pass: &Result<PassSummary, PassError>,
    failing: Vec<(ObjectKey, String)>,
    drift: Option<&PersistentDrift>,
) -> Vec<ObjectEvent> {
    let event = |reason| move |(key, message): (ObjectKey, String)| ObjectEvent { key, reason, message };
    let mut events: Vec<ObjectEvent> = failing.into_iter().map(event("NotReady")).collect();
    match pass {
        Ok(summary) => {
            let held = summary.held.iter().flat_map(|held| held.objects.clone());
            events.extend(held.map(event("WaitsForApproval")));
        }
        Err(error) => events.extend(error.objects().into_iter().map(event("Failed"))),
    }
    if let Some(PersistentDrift::Recurring { keys, .. }) = drift {
        // The same text however often it happens.
        let message = "another client changes it again after each correction";
        events.extend(keys.iter().map(|key| (ObjectKey::clone(key), message.to_owned())).map(event("DriftComesBack")));
    }
    events
}

/// Returns the same name for the same message about the same object and revision.
fn event_name(revision: RevisionId, event: &ObjectEvent) -> String {
    let ObjectEvent { key, reason, message } = event;
    let checksum = Checksum::compute(&format!("{revision} {key} {reason} {message}")).to_string();
    let name: String = key.name.chars().take(NAME_CHARS_MAX).collect();
    format!("{name}.{}", &checksum[..CHECKSUM_CHARS])
}

fn build_event(name: &str, event: &ObjectEvent, resource: &ApiResource, uid: Option<&str>, clock: &Clock) -> Event {
    let ObjectEvent { key, reason, message } = event;
    let now = Some(Time(clock.now()));
    Event {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(key.namespace.clone().unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned())),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some(resource.api_version()),
            kind: Some(key.kind.clone()),
            namespace: key.namespace.clone(),
            name: Some(key.name.clone()),
            uid: uid.map(str::to_owned),
            ..ObjectReference::default()
        },
        type_: Some("Warning".to_owned()),
        reason: Some((*reason).to_owned()),
        message: Some(message.chars().take(MESSAGE_CHARS_MAX).collect()),
        source: Some(EventSource { component: Some(COMPONENT.to_owned()), host: None }),
        reporting_component: Some(COMPONENT.to_owned()),
        first_timestamp: now.clone(),
        last_timestamp: now,
        count: Some(1),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_event_differs_by_object_reason_message_and_revision() {
        let revision = |digit: char| format!("{digit}0000000-0000-4000-8000-00000000000f").parse().unwrap();
        let key = |name: &str| ObjectKey { group: String::new(), kind: "A".into(), namespace: None, name: name.into() };
        let event =
            |name: &str, message: &str| ObjectEvent { key: key(name), reason: "Failed", message: message.into() };
        let name = event_name(revision('1'), &event("a", "x"));
        assert_eq!(name, event_name(revision('1'), &event("a", "x")));
        assert_eq!(name.len(), "a.".len() + CHECKSUM_CHARS);
        assert_ne!(name, event_name(revision('2'), &event("a", "x")));
        assert_ne!(name, event_name(revision('1'), &event("a", "y")));
        assert!(event_name(revision('1'), &event(&"a".repeat(253), "x")).len() <= 253);
    }
}
