//! Lists objects, then watches them, and lists again if the watch has lost its place: no change is missed for good.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::client::{CallError, ObjectEvent, Objects};
use crate::object::text;

/// Pause after a list or a watch that failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Change of the objects of one kind.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectChange {
    /// All objects; an object that is not among them does not exist.
    Listed(Vec<Value>),
    /// An object was added or modified.
    Applied(Value),
    /// An object was deleted; its last state.
    Deleted(Value),
}

/// Start of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchStart {
    /// With a list, and with another one whenever a change may have been missed.
    List,
    /// With the events of the watch alone. Deletions during a gap are missed: wrong on purpose.
    WatchOnly,
}

/// Sends every change of some objects, each with `source`, until the receiver is closed.
pub async fn list_and_watch<T: Copy>(
    objects: Objects,
    source: T,
    start: WatchStart,
    changes: mpsc::Sender<(T, ObjectChange)>,
) {
    while !changes.is_closed() {
        let resource_version = match start {
            WatchStart::WatchOnly => "0".to_owned(),
            WatchStart::List => match objects.list("").await {
                Ok((items, resource_version)) => {
                    if changes.send((source, ObjectChange::Listed(items))).await.is_err() {
                        return;
                    }
                    resource_version
                }
                Err(_) => {
                    tokio::time::sleep(RETRY_AFTER).await;
                    continue;
                }
            },
        };
        watch(&objects, source, resource_version, &changes).await;
    }
}

/// Watches until the resourceVersion is too old or the receiver is closed. A broken watch is resumed at its last event.
async fn watch<T: Copy>(
    objects: &Objects,
    source: T,
    mut resource_version: String,
    changes: &mpsc::Sender<(T, ObjectChange)>,
) {
    while !changes.is_closed() {
        match watch_once(objects, source, &mut resource_version, changes).await {
            Ok(()) => {}
            Err(CallError::Expired | CallError::Missing) => return,
            Err(_) => tokio::time::sleep(RETRY_AFTER).await,
        }
    }
}

async fn watch_once<T: Copy>(
    objects: &Objects,
    source: T,
    resource_version: &mut String,
    changes: &mpsc::Sender<(T, ObjectChange)>,
) -> Result<(), CallError> {
    let from = resource_version.clone();
    let mut events = std::pin::pin!(objects.watch(&from).await?);
    while let Some(event) = events.next().await {
        let change = match event? {
            ObjectEvent::Bookmark(at) => {
                *resource_version = at;
                continue;
            }
            ObjectEvent::Applied(object) => ObjectChange::Applied(object),
            ObjectEvent::Deleted(object) => ObjectChange::Deleted(object),
        };
        if let ObjectChange::Applied(object) | ObjectChange::Deleted(object) = &change {
            text(object, "/metadata/resourceVersion").clone_into(resource_version);
        }
        if changes.send((source, change)).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}
