//! What the server says about itself: discovery, new and old, and OpenAPI, new and old.

use bytes::Bytes;
use http_body_util::Full;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::answer::Answer;
use crate::connection::{Client, ConnectionError};
use crate::files::{Files, pretty};
use crate::play::USER_AGENT;
use crate::target::Target;

/// Both documents of aggregated discovery, as kubectl asks for them.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const JSON: &str = "application/json";
/// Files below this are easier to read than to unpack.
const COMPRESSED: &str = ".gz";

/// A document that is not as documents are.
#[derive(Debug, Error)]
pub enum DocumentError {
    /// No answer.
    #[error("{path}: {error}")]
    Connection {
        /// Of what.
        path: String,
        /// Why.
        error: ConnectionError,
    },
    /// Another answer than the document.
    #[error("{path}: the answer is {status} and not a document")]
    Refused {
        /// Of what.
        path: String,
        /// The status code.
        status: u16,
    },
    /// Something must be there and is not.
    #[error("{path}: no {what}")]
    Incomplete {
        /// Of what.
        path: String,
        /// What.
        what: &'static str,
    },
}

/// Every document, as files.
pub async fn documents(target: &Target) -> Result<Files, DocumentError> {
    let mut reader = Reader { target, client: Client::new(target) };
    let mut files = Files::new();
    for path in ["/api", "/apis"] {
        let name = path.trim_start_matches('/');
        files.insert(format!("discovery/aggregated-{name}.json"), pretty(&reader.read(path, AGGREGATED).await?));
    }
    files.insert("discovery/classic.json".to_owned(), pretty(&classic(&mut reader).await?));
    let v2 = reader.read("/openapi/v2", JSON).await?;
    files.insert(format!("openapi/v2.json{COMPRESSED}"), pretty(&v2));
    let index = reader.read("/openapi/v3", JSON).await?;
    files.insert("openapi/v3.json".to_owned(), pretty(&index));
    for (name, path) in listed(&index)? {
        let document = reader.read(&path, JSON).await?;
        files.insert(format!("openapi/v3/{}.json{COMPRESSED}", name.replace('/', "-")), pretty(&document));
    }
    Ok(files)
}

/// The documents of old: one for all groups, one for each group, one for each of its versions.
async fn classic(reader: &mut Reader<'_>) -> Result<Value, DocumentError> {
    let mut found = Map::new();
    for path in ["/api", "/apis", "/api/v1"] {
        found.insert(path.to_owned(), without_server(reader.read(path, JSON).await?));
    }
    let groups = found["/apis"]["groups"].as_array().cloned().unwrap_or_default();
    for group in groups {
        let name = group["name"].as_str().unwrap_or_default();
        let path = format!("/apis/{name}");
        found.insert(path.clone(), reader.read(&path, JSON).await?);
        for version in group["versions"].as_array().into_iter().flatten() {
            let path = format!("/apis/{}", version["groupVersion"].as_str().unwrap_or_default());
            found.insert(path.clone(), reader.read(&path, JSON).await?);
        }
    }
    Ok(Value::Object(found))
}

/// The machine's own address stands in one of them.
fn without_server(mut document: Value) -> Value {
    if let Some(addresses) = document["serverAddressByClientCIDRs"].as_array_mut() {
        addresses.iter_mut().for_each(|address| address["serverAddress"] = json!("<server>"));
    }
    document
}

/// Names and addresses of the documents in the index of OpenAPI v3.
fn listed(index: &Value) -> Result<Vec<(String, String)>, DocumentError> {
    let incomplete = |what| DocumentError::Incomplete { path: "/openapi/v3".to_owned(), what };
    let paths = index["paths"].as_object().ok_or_else(|| incomplete("paths"))?;
    let address = |(name, entry): (&String, &Value)| {
        let address = entry["serverRelativeURL"].as_str().ok_or_else(|| incomplete("serverRelativeURL"))?;
        Ok((name.clone(), address.to_owned()))
    };
    paths.iter().map(address).collect()
}

struct Reader<'a> {
    target: &'a Target,
    client: Client<'a>,
}

impl Reader<'_> {
    async fn read(&mut self, path: &str, accept: &str) -> Result<Value, DocumentError> {
        let answer = self.ask(path, accept).await;
        let answer = answer.map_err(|error| DocumentError::Connection { path: path.to_owned(), error })?;
        // By its content: the index of OpenAPI v3 says that it is plain text.
        match serde_json::from_slice(&answer.body) {
            Ok(Value::Object(document)) if answer.is_success() => Ok(Value::Object(document)),
            _ => Err(DocumentError::Refused { path: path.to_owned(), status: answer.status.as_u16() }),
        }
    }

    async fn ask(&mut self, path: &str, accept: &str) -> Result<Answer, ConnectionError> {
        let request = self
            .target
            .administrator_request("GET", path)
            .header("Accept", accept)
            .header("User-Agent", USER_AGENT)
            .body(Full::<Bytes>::default())
            .map_err(|error| ConnectionError::Body(error.to_string()))?;
        self.client.send(request).await
    }
}
