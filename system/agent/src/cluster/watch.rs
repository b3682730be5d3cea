//! Watch of one resource type: metadata of objects with the ownership label, event by event.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Deserialize;
use sindri_client::root_cause;
use tokio::time::timeout;

use super::error::ClusterError;
use super::live_object::LiveObject;
use super::ownership::STACK_LABEL;
use super::requests::{ApiClient, ApiRequest, METADATA, Operation};
use super::resource::ApiResource;
use super::response_object::ResponseObject;

/// Time after which the server ends a watch; it is then continued from the last resourceVersion.
const WATCH_SECONDS: u64 = 290;
/// Longest time without an event. The server sends a bookmark about once a minute, so a longer silence means a broken connection.
const SILENCE_MAX: Duration = Duration::from_secs(150);
/// Longest line: an object has at most a few mebibytes.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Event of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// The object was added or modified.
    Changed(LiveObject),
    /// The object was deleted or lost its label; holds its last state.
    Removed(LiveObject),
    /// The server reports its current resourceVersion.
    Bookmark,
}

/// One line of the response.
#[derive(Deserialize)]
struct EventLine<'a> {
    #[serde(borrow, rename = "type")]
    event_type: Cow<'a, str>,
    #[serde(borrow)]
    object: ResponseObject<'a>,
}

/// An open watch.
pub struct Watch {
    resource: Arc<ApiResource>,
    request: ApiRequest<'static>,
    body: Incoming,
    buffer: BytesMut,
    /// resourceVersion from which a further watch continues.
    pub resource_version: String,
}

impl Watch {
    /// Opens a watch of one namespace or of the whole cluster.
    pub(super) async fn open(
        api: &ApiClient,
        resource: &Arc<ApiResource>,
        namespace: Option<&str>,
        resource_version: &str,
    ) -> Result<Self, ClusterError> {
        let query =
            format!("labelSelector={STACK_LABEL}&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&watch=true");
        let path = resource.path(namespace.filter(|_| resource.namespaced));
        let path = format!("{path}?{query}&resourceVersion={resource_version}");
        let operation = Operation::Other(format!("watch labelled {}", resource.plural));
        let request = ApiRequest::get(operation, path).accepting(METADATA);
        let body = api.open_stream(&request).await?;
        let (resource, resource_version) = (resource.clone(), resource_version.to_owned());
        Ok(Self { resource, request, body, buffer: BytesMut::new(), resource_version })
    }

    /// Returns the next event; `None` when the server has ended the watch.
    pub async fn next_event(&mut self) -> Result<Option<WatchEvent>, ClusterError> {
        loop {
            if let Some(line) = self.take_line() {
                let event = serde_json::from_slice(&line).map_err(|error| self.request.malformed(error.to_string()))?;
                return self.read_event(&event).map(Some);
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                return Err(self.request.malformed(format!("a line has more than {LINE_BYTES_MAX} bytes")));
            }
            let frame = timeout(SILENCE_MAX, self.body.frame()).await;
            let frame = frame.map_err(|_| {
                self.request.unreachable(format!("the watch had no event within {} s", SILENCE_MAX.as_secs()))
            })?;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(self.request.unreachable(root_cause(&error))),
                Some(Ok(frame)) => {
                    frame.data_ref().into_iter().for_each(|data| self.buffer.extend_from_slice(data));
                }
            }
        }
    }

    fn take_line(&mut self) -> Option<BytesMut> {
        let end = self.buffer.iter().position(|byte| *byte == b'\n')?;
        let line = self.buffer.split_to(end);
        self.buffer.advance(1);
        Some(line)
    }

    fn read_event(&mut self, event: &EventLine<'_>) -> Result<WatchEvent, ClusterError> {
        let object = &event.object.value;
        if event.event_type == "ERROR" {
            let status = object["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
            let (operation, body) = (self.request.operation.to_failed(), object.to_string());
            return Err(ClusterError::from_response(operation, status, None, body.as_bytes()));
        }
        let resource_version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if !resource_version.is_empty() {
            self.resource_version = resource_version.to_owned();
        }
        let read_object = || LiveObject::from_response(&self.request, &self.resource, &event.object);
        match &*event.event_type {
            "ADDED" | "MODIFIED" => read_object().map(WatchEvent::Changed),
            "DELETED" => read_object().map(WatchEvent::Removed),
            "BOOKMARK" => Ok(WatchEvent::Bookmark),
            _ => Err(self.request.malformed("a watch event has an unknown type")),
        }
    }
}
