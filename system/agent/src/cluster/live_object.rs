//! State of a live object, as far as the agent uses it.

use std::sync::Arc;

use serde_json::Value;
use sindri_model::ObjectKey;

use super::error::ClusterError;
use super::ownership::{Ownership, PRUNE_ANNOTATION};
use super::requests::ApiRequest;
use super::resource::ApiResource;
use super::response_object::{AppliedFieldsHash, ResponseObject};

/// Annotation of a token Secret: the UID of its ServiceAccount.
const SERVICE_ACCOUNT_UID_ANNOTATION: &str = "kubernetes.io/service-account.uid";

/// Owner reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// API group of the owner.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its UID.
    pub uid: String,
}

/// Metadata of a live object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveObject {
    /// Key of the object.
    pub key: Arc<ObjectKey>,
    /// Resource type by which it was read.
    pub resource: Arc<ApiResource>,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
    /// Hash of the fields that the agent manages, if it manages any.
    pub applied_fields: Option<AppliedFieldsHash>,
    /// Ownership label and annotations.
    pub ownership: Ownership,
    /// Its owner references.
    pub owners: Vec<Owner>,
    /// UID of its ServiceAccount, if it is a Secret with a token.
    pub service_account_uid: Option<String>,
    /// True if it has a deletion timestamp.
    pub is_terminating: bool,
    /// True if its annotation keeps it when it is no longer declared.
    pub is_prune_disabled: bool,
}

impl LiveObject {
    /// Reads the metadata from a response to `request`.
    pub(super) fn from_response(
        request: &ApiRequest<'_>,
        resource: &Arc<ApiResource>,
        response: &ResponseObject<'_>,
    ) -> Result<Self, ClusterError> {
        let metadata = response.metadata();
        let name = metadata["name"].as_str().ok_or_else(|| request.malformed("an object has no name"))?;
        let uid = metadata["uid"].as_str().filter(|uid| !uid.is_empty());
        Ok(Self {
            key: Arc::new(resource.object_key(metadata["namespace"].as_str(), name)),
            resource: resource.clone(),
            uid: uid.ok_or_else(|| request.malformed("an object has no uid"))?.to_owned(),
            resource_version: metadata["resourceVersion"].as_str().unwrap_or_default().to_owned(),
            applied_fields: response.applied_fields(),
            ownership: Ownership::from_metadata(metadata),
            owners: read_owners(metadata),
            service_account_uid: metadata["annotations"][SERVICE_ACCOUNT_UID_ANNOTATION].as_str().map(str::to_owned),
            is_terminating: metadata["deletionTimestamp"].is_string(),
            is_prune_disabled: metadata["annotations"][PRUNE_ANNOTATION] == "disabled",
        })
    }

    /// Returns true if its resourceVersion is known to be older than that of `other`.
    pub fn is_older_than(&self, other: &Self) -> bool {
        is_older(&self.resource_version, &other.resource_version)
    }
}

fn read_owners(metadata: &Value) -> Vec<Owner> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let to_owner = |owner: &Value| {
        let group = owner["apiVersion"].as_str().and_then(|version| version.split_once('/')).map(|(group, _)| group);
        Owner { group: group.unwrap_or_default().to_owned(), kind: text(&owner["kind"]), uid: text(&owner["uid"]) }
    };
    metadata["ownerReferences"].as_array().into_iter().flatten().map(to_owner).collect()
}

/// Returns true if both resourceVersions are numbers and the first is smaller. The number grows with every write to the
/// cluster; a version that is no number is never older.
pub fn is_older(version: &str, than: &str) -> bool {
    matches!((version.parse::<u64>(), than.parse::<u64>()), (Ok(version), Ok(than)) if version < than)
}
