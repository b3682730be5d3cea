//! Watches: what happens to the objects of one kind that carry our label, as it happens, metadata only.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Deserialize;
use sindri_client::root_cause;
use tokio::time::timeout;

use super::discovery::Resource;
use super::error::ClusterError;
use super::objects::{LiveObject, METADATA, live};
use super::requests::{Call, Cluster, Operation};
use super::response_object::Received;
use crate::cluster::ownership::STACK_LABEL;

/// After this the server ends a watch, and it is begun anew where it ended.
const WATCH_SECONDS: u64 = 290;
/// A quiet watch has a bookmark about once a minute; one that is quieter than this is taken for broken.
const QUIET_MAX: Duration = Duration::from_secs(150);
/// The longest line: an object is at most a few mebibytes.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What a watch has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The object is there, and like this.
    Seen(LiveObject),
    /// It is gone, or no longer carries our label; this is how it was.
    Gone(LiveObject),
    /// Nothing, up to here.
    Bookmark,
}

/// One line of a watch.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    sort: Cow<'a, str>,
    #[serde(borrow)]
    object: Received<'a>,
}

/// An open watch.
pub struct Changes {
    resource: Arc<Resource>,
    call: Call<'static>,
    body: Incoming,
    read: BytesMut,
    /// Where a further watch has to begin.
    pub version: String,
}

impl Cluster {
    /// The metadata of every object of a kind that carries our label, and where a watch has to begin.
    pub async fn marked(&self, resource: &Arc<Resource>) -> Result<(Vec<LiveObject>, String), ClusterError> {
        let operation = format!("list {} that are ours", resource.plural);
        self.list_at(operation, resource, None, &format!("labelSelector={STACK_LABEL}")).await
    }

    /// Watches them. Not retried: whoever watches knows better what to do then.
    pub async fn watch(&self, resource: &Arc<Resource>, version: &str) -> Result<Changes, ClusterError> {
        let query =
            format!("labelSelector={STACK_LABEL}&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&watch=true");
        let path = format!(
            "{}?{query}&resourceVersion={version}",
            resource.path(self.scope().filter(|_| resource.namespaced))
        );
        let call =
            Call::get(Operation::Said(format!("watch {} that are ours", resource.plural)), path).accepting(METADATA);
        let body = self.open(&call).await?;
        Ok(Changes { resource: resource.clone(), call, body, read: BytesMut::new(), version: version.to_owned() })
    }
}

impl Changes {
    /// The next change; `None` when the server has ended the watch.
    pub async fn next(&mut self) -> Result<Option<Change>, ClusterError> {
        loop {
            if let Some(line) = self.line() {
                let event = serde_json::from_slice(&line).map_err(|error| self.call.malformed(error.to_string()))?;
                return self.change(&event).map(Some);
            }
            if self.read.len() > LINE_BYTES_MAX {
                return Err(self.call.malformed(format!("a line has more than {LINE_BYTES_MAX} bytes")));
            }
            let frame = timeout(QUIET_MAX, self.body.frame()).await;
            let frame = frame.map_err(|_| self.call.unreachable("the watch fell silent".to_owned()))?;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(self.call.unreachable(root_cause(&error))),
                Some(Ok(frame)) => {
                    frame.data_ref().into_iter().for_each(|data| self.read.extend_from_slice(data));
                }
            }
        }
    }

    fn line(&mut self) -> Option<BytesMut> {
        let end = self.read.iter().position(|byte| *byte == b'\n')?;
        let line = self.read.split_to(end);
        self.read.advance(1);
        Some(line)
    }

    fn change(&mut self, event: &Event<'_>) -> Result<Change, ClusterError> {
        let object = &event.object.object;
        if event.sort == "ERROR" {
            let status = object["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
            return Err(ClusterError::refused(
                &self.call.operation.to_string(),
                status,
                None,
                object.to_string().as_bytes(),
            ));
        }
        let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if !version.is_empty() {
            self.version = version.to_owned();
        }
        match &*event.sort {
            "ADDED" | "MODIFIED" => live(&self.call, &self.resource, &event.object).map(Change::Seen),
            "DELETED" => live(&self.call, &self.resource, &event.object).map(Change::Gone),
            "BOOKMARK" => Ok(Change::Bookmark),
            _ => Err(self.call.malformed("a watch event has an unknown type")),
        }
    }
}
