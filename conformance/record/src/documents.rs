//! Documents of the server: aggregated and classic discovery, OpenAPI v2 and v3, and its initial objects.

use bytes::Bytes;
use http_body_util::Full;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::connection::{Client, ConnectionError};
use crate::files::{Files, pretty};
use crate::initial_objects::{LISTS, normalise_list};
use crate::response::FullResponse;
use crate::script_runner::USER_AGENT;
use crate::target::Target;

/// Media type of aggregated discovery, as kubectl requests it.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const JSON: &str = "application/json";
/// Suffix of compressed files: only large documents are compressed.
const COMPRESSED: &str = ".gz";

/// A document that could not be read.
#[derive(Debug, Error)]
pub enum DocumentError {
    /// No response.
    #[error("{path}: {error}")]
    Connection {
        /// Path of the document.
        path: String,
        /// Cause.
        error: ConnectionError,
    },
    /// The response is no document.
    #[error("{path}: the server answered {status} without a document")]
    Rejected {
        /// Path of the document.
        path: String,
        /// Status code.
        status: u16,
    },
    /// A required field is missing.
    #[error("{path}: no {what}")]
    Incomplete {
        /// Path of the document.
        path: String,
        /// Field.
        what: &'static str,
    },
}

/// Reads all documents, as files.
pub async fn read_documents(target: &Target) -> Result<Files, DocumentError> {
    let mut reader = DocumentReader { target, client: Client::new(target) };
    let mut files = Files::new();
    for path in ["/api", "/apis"] {
        let name = path.trim_start_matches('/');
        files.insert(format!("discovery/aggregated-{name}.json"), pretty(&reader.read(path, AGGREGATED).await?));
    }
    files.insert("discovery/classic.json".to_owned(), pretty(&read_classic_discovery(&mut reader).await?));
    files.insert(format!("bootstrap.json{COMPRESSED}"), pretty(&read_initial_objects(&mut reader).await?));
    let v2 = reader.read("/openapi/v2", JSON).await?;
    files.insert(format!("openapi/v2.json{COMPRESSED}"), pretty(&v2));
    let index = reader.read("/openapi/v3", JSON).await?;
    files.insert("openapi/v3.json".to_owned(), pretty(&index));
    for (name, path) in list_openapi_v3(&index)? {
        let document = reader.read(&path, JSON).await?;
        files.insert(format!("openapi/v3/{}.json{COMPRESSED}", name.replace('/', "-")), pretty(&document));
    }
    Ok(files)
}

/// Reads classic discovery: one document for all groups, one for each group, one for each of its versions.
async fn read_classic_discovery(reader: &mut DocumentReader<'_>) -> Result<Value, DocumentError> {
    let mut documents = Map::new();
    for path in ["/api", "/apis", "/api/v1"] {
        documents.insert(path.to_owned(), without_server(reader.read(path, JSON).await?));
    }
    let groups = documents["/apis"]["groups"].as_array().cloned().unwrap_or_default();
    for group in groups {
        let name = group["name"].as_str().unwrap_or_default();
        let path = format!("/apis/{name}");
        documents.insert(path.clone(), reader.read(&path, JSON).await?);
        for version in group["versions"].as_array().into_iter().flatten() {
            let path = format!("/apis/{}", version["groupVersion"].as_str().unwrap_or_default());
            documents.insert(path.clone(), reader.read(&path, JSON).await?);
        }
    }
    Ok(Value::Object(documents))
}

/// Reads the objects of a new server, as lists by path.
async fn read_initial_objects(reader: &mut DocumentReader<'_>) -> Result<Value, DocumentError> {
    let mut lists = Map::new();
    for path in LISTS {
        lists.insert(path.to_owned(), normalise_list(&reader.read(path, JSON).await?));
    }
    Ok(Value::Object(lists))
}

/// Replaces the machine's own address.
fn without_server(mut document: Value) -> Value {
    if let Some(addresses) = document["serverAddressByClientCIDRs"].as_array_mut() {
        addresses.iter_mut().for_each(|address| address["serverAddress"] = json!("<server>"));
    }
    document
}

/// Returns the names and paths of the documents in the index of OpenAPI v3.
fn list_openapi_v3(index: &Value) -> Result<Vec<(String, String)>, DocumentError> {
    let incomplete = |what| DocumentError::Incomplete { path: "/openapi/v3".to_owned(), what };
    let paths = index["paths"].as_object().ok_or_else(|| incomplete("paths"))?;
    let address = |(name, entry): (&String, &Value)| {
        let address = entry["serverRelativeURL"].as_str().ok_or_else(|| incomplete("serverRelativeURL"))?;
        Ok((name.clone(), address.to_owned()))
    };
    paths.iter().map(address).collect()
}

struct DocumentReader<'a> {
    target: &'a Target,
    client: Client<'a>,
}

impl DocumentReader<'_> {
    async fn read(&mut self, path: &str, accept: &str) -> Result<Value, DocumentError> {
        let response = self.send(path, accept).await;
        let response = response.map_err(|error| DocumentError::Connection { path: path.to_owned(), error })?;
        // The content type is not checked: that of the index of OpenAPI v3 is text/plain.
        match serde_json::from_slice(&response.body) {
            Ok(Value::Object(document)) if response.is_success() => Ok(Value::Object(document)),
            _ => Err(DocumentError::Rejected { path: path.to_owned(), status: response.status.as_u16() }),
        }
    }

    async fn send(&mut self, path: &str, accept: &str) -> Result<FullResponse, ConnectionError> {
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
