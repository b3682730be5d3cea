//! Requests per second: each connection sends one request after the other, for a while.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join_all;
use http_body_util::Full;
use serde_json::json;
use thiserror::Error;

use super::now;
use crate::connection::{Connection, ConnectionError};
use crate::target::Target;

/// How long the server is asked before it counts, and while it counts.
const WARM: Duration = Duration::from_millis(500);
const SPAN: Duration = Duration::from_secs(4);
const PATH: &str = "/api/v1/namespaces/default/configmaps";
/// The size of what is applied: that of a small manifest.
const VALUE_BYTES: usize = 1024;

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// One object is read.
    Get,
    /// Two values take turns, so that each apply writes.
    ApplyChange,
    /// The same value again and again, so that none does.
    ApplySame,
}

/// Every kind, in the order in which they are measured.
pub const ALL: [Kind; 3] = [Kind::Get, Kind::ApplyChange, Kind::ApplySame];

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "get",
            Self::ApplyChange => "server-side apply that changes",
            Self::ApplySame => "server-side apply that changes nothing",
        })
    }
}

/// A figure that could not be taken.
#[derive(Debug, Error)]
pub enum LoadError {
    /// No answer.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// Another answer than expected.
    #[error("the answer is {0}")]
    Refused(u16),
    /// Not a request.
    #[error(transparent)]
    Request(#[from] http::Error),
}

/// Requests per second over so many connections.
pub async fn rate(target: &Target, kind: Kind, connections: usize) -> Result<f64, LoadError> {
    let mut askers = Vec::new();
    for number in 0..connections {
        let mut asker = Asker { target, kind, number, sent: 0, connection: Connection::open(target).await? };
        asker.apply(0).await?;
        askers.push(asker);
    }
    try_join_all(askers.iter_mut().map(|asker| asker.go_on_for(WARM))).await?;
    let began = now();
    let counts = try_join_all(askers.iter_mut().map(|asker| asker.go_on_for(SPAN))).await?;
    let sent: u32 = counts.iter().sum();
    Ok(f64::from(sent) / (now() - began).as_secs_f64())
}

struct Asker<'a> {
    target: &'a Target,
    kind: Kind,
    number: usize,
    sent: u32,
    connection: Connection,
}

impl Asker<'_> {
    async fn go_on_for(&mut self, span: Duration) -> Result<u32, LoadError> {
        let (end, mut count) = (now() + span, 0);
        while now() < end {
            self.sent += 1;
            match self.kind {
                Kind::Get => self.get().await?,
                Kind::ApplyChange => self.apply(self.sent % 2).await?,
                Kind::ApplySame => self.apply(0).await?,
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
        let answer = self.connection.send(request).await?;
        if answer.is_success() { Ok(()) } else { Err(LoadError::Refused(answer.status.as_u16())) }
    }
}
