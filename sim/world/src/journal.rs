//! Writes of the agents, read from the journals of the API servers.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;
use sindri_agent::LEASE_NAME;
use sindri_apiserver::{Actor, Write};
use sindri_model::ObjectKey;

use crate::object_key::{from_stored_key, parse_object_key};

/// Prefix of the user agent that every agent sends.
pub const AGENT_USER_AGENT: &str = "sindri-agent/";

/// Effect of a write on its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The object did not exist before.
    Create,
    /// The object existed before and stays.
    Change,
    /// The object is gone, or got its deletion timestamp.
    Delete,
}

impl Operation {
    /// Classifies a write by the object before and after it. The verb of the request does not tell: server-side apply
    /// creates and changes, and any write that removes the last finalizer deletes.
    pub fn from_write(write: &Write) -> Self {
        let is_deleting = |object: &Value| object["metadata"]["deletionTimestamp"].is_string();
        match (&write.before, &write.after) {
            (None, _) => Self::Create,
            (Some(_), None) => Self::Delete,
            (Some(before), Some(after)) if !is_deleting(before) && is_deleting(after) => Self::Delete,
            (Some(_), Some(_)) => Self::Change,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Delete => "delete",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// One committed write of an agent; scenarios spell it `create ConfigMap shop/a`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentWrite {
    /// Its effect.
    pub operation: Operation,
    /// The object.
    pub key: ObjectKey,
}

impl AgentWrite {
    /// Reads an entry of a journal; `None` if another client wrote it, if it renews the Lease, which agents do all the
    /// time, or if it saves the copy of the target state, which after faults may be later than the pass.
    pub fn from_write(write: &Write) -> Option<Self> {
        let key = from_stored_key(&write.key);
        (is_by_agent(write) && !is_lease(&key) && !is_copy(&key))
            .then(|| Self { operation: Operation::from_write(write), key })
    }
}

impl fmt::Display for AgentWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operation, self.key)
    }
}

impl FromStr for AgentWrite {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, key) = text.split_once(' ').unwrap_or((text, ""));
        let operations = [Operation::Create, Operation::Change, Operation::Delete];
        let operation = operations.into_iter().find(|operation| operation.word() == word);
        let operation =
            operation.ok_or_else(|| format!("{text:?} is not a write: it begins with create, change or delete"))?;
        Ok(Self { operation, key: parse_object_key(key)? })
    }
}

impl<'de> Deserialize<'de> for AgentWrite {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for AgentWrite {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Returns true if an agent made the write.
pub fn is_by_agent(write: &Write) -> bool {
    matches!(&write.actor, Actor::Client { user_agent, .. } if user_agent.starts_with(AGENT_USER_AGENT))
}

/// Returns true for the Lease of the agents' leader election, which is renewed even if nothing else happens.
pub fn is_lease(key: &ObjectKey) -> bool {
    key.kind == "Lease" && key.name == LEASE_NAME
}

/// Returns true for a Secret that holds the agent's copy of the target state.
pub fn is_copy(key: &ObjectKey) -> bool {
    key.group.is_empty() && key.kind == "Secret" && key.name.starts_with("target-state-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_parsed_as_it_is_printed() {
        for text in ["create ConfigMap shop/a", "change apps/Deployment shop/web", "delete Namespace shop"] {
            assert_eq!(text.parse::<AgentWrite>().map(|write| write.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn a_write_without_a_known_operation_or_a_key_is_rejected() {
        let error = |text: &str| text.parse::<AgentWrite>().err().unwrap_or_default();
        assert!(error("remove ConfigMap shop/a").contains("create, change or delete"));
        assert!(error("delete ConfigMap").contains("is not an object key"));
        assert!(error("").contains("create, change or delete"));
    }
}
