//! Rules for commands in containers and for ports of pods, which no program answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::object::fields::{name, string_at};
use crate::process::port_server::PortAnswer;

/// Result of the commands that match all given fields. A field without value matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ExecRule {
    /// Namespace of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Prefix of the pod's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Name of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Prefix of the command, whose arguments are joined by spaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Output of the command.
    pub stdout: String,
    /// Error output of the command.
    pub stderr: String,
    /// Exit code of the command.
    pub exit_code: u8,
}

impl ExecRule {
    pub(super) fn matches(&self, pod: &Value, container: &str, command: &str) -> bool {
        matches_pod(pod, self.namespace.as_deref(), self.pod.as_deref())
            && self.container.as_deref().is_none_or(|wanted| wanted == container)
            && self.command.as_deref().is_none_or(|wanted| command.starts_with(wanted))
    }
}

/// Answer of the ports that match all given fields. A field without value matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PortRule {
    /// Namespace of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Prefix of the pod's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Number of the port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Reply to the first bytes of a connection, or the page for an HTTP request; a text that begins with `HTTP/` is the whole
    /// response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// True if nothing listens on the port.
    pub refuse: bool,
}

impl PortRule {
    pub(super) fn matches(&self, pod: &Value, port: u16) -> bool {
        matches_pod(pod, self.namespace.as_deref(), self.pod.as_deref())
            && self.port.is_none_or(|wanted| wanted == port)
    }

    pub(super) fn answer(&self, pod: &Value, port: u16) -> PortAnswer {
        match &self.reply {
            _ if self.refuse => PortAnswer::Refused,
            Some(text) => PortAnswer::Reply { text: text.clone() },
            None => default_answer(pod, port),
        }
    }
}

/// Returns the answer of a port without a rule.
pub(super) fn default_answer(pod: &Value, port: u16) -> PortAnswer {
    PortAnswer::Echo { page: format!("{} {port}\n", name(pod)) }
}

fn matches_pod(pod: &Value, namespace: Option<&str>, prefix: Option<&str>) -> bool {
    namespace.is_none_or(|wanted| string_at(pod, "/metadata/namespace") == wanted)
        && prefix.is_none_or(|wanted| name(pod).starts_with(wanted))
}
