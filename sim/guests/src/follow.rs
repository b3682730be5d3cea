//! List, then watch, for ever: whatever happens to the watch, nothing is missed for good.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::client::{Event, Failure, Objects, text};

/// How long is waited after a list or a watch that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// What one is told about the objects of one kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// All of them; whatever is not among them is gone.
    Listed(Vec<Value>),
    /// One is there, and like this.
    Seen(Value),
    /// One is gone; this is how it was.
    Gone(Value),
}

/// How one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// With a list, and with another whenever something may have been missed.
    List,
    /// With what the watch tells. What was deleted meanwhile is never heard of: wrong, on purpose.
    WatchOnly,
}

/// Follows objects and tells about them with a word of which they are, until nobody listens.
pub async fn follow<T: Copy>(objects: Objects, of: T, beginning: Beginning, tell: mpsc::Sender<(T, Change)>) {
    while !tell.is_closed() {
        let version = match beginning {
            Beginning::WatchOnly => "0".to_owned(),
            Beginning::List => match objects.list("").await {
                Ok((items, version)) => {
                    if tell.send((of, Change::Listed(items))).await.is_err() {
                        return;
                    }
                    version
                }
                Err(_) => {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            },
        };
        watch(&objects, of, version, &tell).await;
    }
}

/// Watches until the history is gone or nobody listens; a watch that breaks is resumed where it was.
async fn watch<T: Copy>(objects: &Objects, of: T, mut version: String, tell: &mpsc::Sender<(T, Change)>) {
    while !tell.is_closed() {
        match watch_once(objects, of, &mut version, tell).await {
            Ok(()) => {}
            Err(Failure::Expired | Failure::Missing) => return,
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn watch_once<T: Copy>(
    objects: &Objects,
    of: T,
    version: &mut String,
    tell: &mpsc::Sender<(T, Change)>,
) -> Result<(), Failure> {
    let from = version.clone();
    let mut events = std::pin::pin!(objects.watch(&from).await?);
    while let Some(event) = events.next().await {
        let change = match event? {
            Event::Bookmark(at) => {
                *version = at;
                continue;
            }
            Event::Seen(object) => Change::Seen(object),
            Event::Gone(object) => Change::Gone(object),
        };
        if let Change::Seen(object) | Change::Gone(object) = &change {
            text(object, "/metadata/resourceVersion").clone_into(version);
        }
        if tell.send((of, change)).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}
