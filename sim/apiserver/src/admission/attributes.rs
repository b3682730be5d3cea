//! A write as policies and webhooks see it.

use serde_json::{Value, json};

use crate::auth::user::User;
use crate::http::webhook_call::WebhookAnswers;
use crate::registry::resource::Target;
use crate::registry::served::Registry;
use crate::storage::store::Store;

/// Operation of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    /// Streams of a pod, such as `exec`.
    Connect,
}

impl Operation {
    /// Returns the name in rules and reviews.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// Group, version and kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

impl Kind {
    /// Returns the kind of the objects of a resource.
    pub(crate) fn from_target(target: &Target) -> Self {
        let (group, version) = (target.resource.group.clone(), target.version.name.clone());
        Self { group, version, kind: target.resource.kind.clone() }
    }

    /// Returns the kind as in reviews.
    pub(super) fn to_value(&self) -> Value {
        json!({"group": self.group, "version": self.version, "kind": self.kind})
    }
}

/// A write as policies and webhooks see it.
pub(crate) struct Attributes<'a> {
    pub(crate) store: &'a Store,
    pub(crate) registry: &'a Registry,
    pub(crate) target: &'a Target,
    /// Kind of the object; that of a subresource such as `scale` is not the kind of the resource.
    pub(crate) kind: Kind,
    /// Namespace; for a Namespace its own name; empty for other cluster-scoped objects.
    pub(crate) namespace: &'a str,
    /// Empty for an object whose name is not generated yet.
    pub(crate) name: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) operation: Operation,
    pub(crate) user: &'a User,
    pub(crate) dry_run: bool,
    /// `CreateOptions`, `UpdateOptions` or `DeleteOptions`; null for `CONNECT`.
    pub(crate) options: &'a Value,
    pub(crate) answers: &'a WebhookAnswers,
}

/// The objects of a write: the new one, except for a delete, and the stored one, except for a create.
#[derive(Clone, Copy)]
pub(crate) struct Objects<'a> {
    pub(crate) new: Option<&'a Value>,
    pub(crate) old: Option<&'a Value>,
}
