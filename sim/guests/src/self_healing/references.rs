//! The objects to which an agent refers, and the agents that refer to an object.

use std::collections::BTreeSet;

use kube::Client;
use serde_json::Value;

use super::children::Config;
use super::crd::{AGENT, MODEL_CONFIG, SECRET};
use crate::client::{CallError, Objects};
use crate::object::{name, text};

/// Namespace and name of an agent.
pub(super) type Key = (String, String);

/// Result of following the references of an agent.
#[derive(Clone, PartialEq, Eq)]
pub enum References {
    /// Every reference leads to an object.
    Complete(Config),
    /// One does not; the message says which.
    Missing(String),
}

/// Builds the configuration from the objects to which an agent refers.
pub fn resolve(agent: &Value, model_config: Option<&Value>, secret: Option<&Value>) -> References {
    let Some(model_config) = model_config else {
        return References::Missing(format!("ModelConfig {} does not exist", text(agent, "/spec/modelConfig")));
    };
    let key = secret.map(|secret| text(secret, "/data/key")).unwrap_or_default();
    if key.is_empty() {
        return References::Missing(format!("Secret {} has no key", text(model_config, "/spec/secret")));
    }
    References::Complete(Config { model: text(model_config, "/spec/model").to_owned(), key: key.to_owned() })
}

/// Reads the objects to which an agent refers.
pub(super) async fn read_references(client: &Client, agent: &Value) -> Result<References, CallError> {
    let namespace = text(agent, "/metadata/namespace");
    let model_configs = Objects::in_namespace(client, MODEL_CONFIG, namespace);
    let model_config = model_configs.get(text(agent, "/spec/modelConfig")).await?;
    let secret = match &model_config {
        Some(found) => Objects::in_namespace(client, SECRET, namespace).get(text(found, "/spec/secret")).await?,
        None => None,
    };
    Ok(resolve(agent, model_config.as_ref(), secret.as_ref()))
}

/// Finds the agents that refer to one of these model configurations of a namespace.
pub(super) async fn find_agents(
    client: &Client,
    namespace: &str,
    model_configs: &BTreeSet<String>,
) -> Result<Vec<Key>, CallError> {
    let (agents, _) = Objects::in_namespace(client, AGENT, namespace).list("").await?;
    let referring = agents.iter().filter(|agent| model_configs.contains(text(agent, "/spec/modelConfig")));
    Ok(referring.map(|agent| (namespace.to_owned(), name(agent).to_owned())).collect())
}

/// Finds the model configurations of a namespace that refer to a Secret.
pub(super) async fn find_model_configs(
    client: &Client,
    namespace: &str,
    secret: &str,
) -> Result<BTreeSet<String>, CallError> {
    let (model_configs, _) = Objects::in_namespace(client, MODEL_CONFIG, namespace).list("").await?;
    let referring = model_configs.iter().filter(|model_config| text(model_config, "/spec/secret") == secret);
    Ok(referring.map(|model_config| name(model_config).to_owned()).collect())
}
