//! Requests per second to an API server: each connection sends one request after the other for a fixed time.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join_all;
use http_body_util::Full;
use serde_json::json;
use sindri_record::connection::{Connection, ConnectionError};
use sindri_record::target::Target;
use thiserror::Error;

use crate::clock::now;

/// Time before requests are counted, and while they are counted.
const WARM_UP: Duration = Duration::from_millis(500);
const SPAN: Duration = Duration::from_secs(4);
const PATH: &str = "/api/v1/namespaces/default/configmaps";
/// Size of an applied value: that of a small manifest.
const VALUE_BYTES: usize = 1024;

/// Requests that are sent repeatedly.
#[derive(Clone, Copy, Debug)]
pub enum RepeatedRequest {
    /// Reads one object.
    Get,
    /// Applies two values in turns, so that each apply writes.
    ApplyChange,
    /// Applies the same value every time, so that no apply writes.
    ApplySame,
}

impl RepeatedRequest {
    /// All of them, in the order in which they are measured.
    pub const ALL: [Self; 3] = [Self::Get, Self::ApplyChange, Self::ApplySame];
}

impl fmt::Display for RepeatedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "get",
            Self::ApplyChange => "server-side apply that changes",
            Self::ApplySame => "server-side apply that changes nothing",
        })
    }
}

/// Failure of a measurement.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The connection failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The server rejected a request with this status.
    #[error("the server answered {0}")]
    Rejected(u16),
    /// The request could not be built.
    #[error(transparent)]
    Request(#[from] http::Error),
}

/// Measures requests per second over a number of connections.
pub async fn measure(target: &Target, request: RepeatedRequest, connections: usize) -> Result<f64, LoadError> {
    let mut clients = Vec::new();
    for number in 0..connections {
        let mut client = LoadClient { target, request, number, sent: 0, connection: Connection::open(target).await? };
        client.apply(0).await?;
        clients.push(client);
    }
    try_join_all(clients.iter_mut().map(|client| client.send_for(WARM_UP))).await?;
    let began = now();
    let counts = try_join_all(clients.iter_mut().map(|client| client.send_for(SPAN))).await?;
    let sent: u32 = counts.iter().sum();
    Ok(f64::from(sent) / (now() - began).as_secs_f64())
}

/// One connection with an object of its own.
struct LoadClient<'a> {
    target: &'a Target,
    request: RepeatedRequest,
    number: usize,
    sent: u32,
    connection: Connection,
}

impl LoadClient<'_> {
    /// Sends requests for some time and returns their number.
    async fn send_for(&mut self, span: Duration) -> Result<u32, LoadError> {
        let (end, mut count) = (now() + span, 0);
        while now() < end {
            self.sent += 1;
            match self.request {
                RepeatedRequest::Get => self.get().await?,
                RepeatedRequest::ApplyChange => self.apply(self.sent % 2).await?,
                RepeatedRequest::ApplySame => self.apply(0).await?,
            }
            count += 1;
        }
        Ok(count)
    }

    async fn get(&mut self) -> Result<(), LoadError> {
        self.send("GET", "", Bytes::new()).await
    }

    async fn apply(&mut self, variant: u32) -> Result<(), LoadError> {
        let data = json!({"variant": variant.to_string(), "rest": "x".repeat(VALUE_BYTES)});
        let name = format!("bench-{}", self.number);
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
        self.send("PATCH", "?fieldManager=bench&force=true", object.to_string().into()).await
    }

    async fn send(&mut self, method: &str, query: &str, body: Bytes) -> Result<(), LoadError> {
        let path = format!("{PATH}/bench-{}{query}", self.number);
        let request = self
            .target
            .administrator_request(method, &path)
            .header("Accept", "application/json")
            .header("Content-Type", "application/apply-patch+yaml")
            .body(Full::new(body))?;
        let response = self.connection.send(request).await?;
        if response.is_success() { Ok(()) } else { Err(LoadError::Rejected(response.status.as_u16())) }
    }
}
