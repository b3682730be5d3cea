//! Admission of certificate signing requests: permissions of signers, and subjects that are reserved.

use serde_json::Value;

use crate::auth::authorization_request::AuthorizationRequest;
use crate::auth::rbac::find_permission;
use crate::auth::user::{MASTERS, User};
use crate::encoding::certificates::request_organizations;
use crate::object::fields::string_at;
use crate::registry::resource::Resource;
use crate::storage::store::Store;

const GROUP: &str = "certificates.k8s.io";
/// Signer of the certificates of clients.
pub(crate) const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// True if a user may act for a signer, or for all signers of its domain.
pub(crate) fn may_use_signer(store: &Store, user: &User, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    [signer.to_owned(), format!("{domain}/*")].into_iter().any(|name| {
        let request = AuthorizationRequest {
            verb: verb.to_owned(),
            group: GROUP.to_owned(),
            resource: "signers".to_owned(),
            name,
            ..AuthorizationRequest::default()
        };
        find_permission(store, user, &request).is_some()
    })
}

/// Returns the reason for which a new certificate signing request is rejected.
pub(crate) fn subject_violation(resource: &Resource, object: &Value) -> Option<&'static str> {
    let is_for_client = resource.is(GROUP, "certificatesigningrequests")
        && string_at(object, "/spec/signerName") == CLIENT_SIGNER
        && request_organizations(string_at(object, "/spec/request")).iter().any(|group| group == MASTERS);
    is_for_client
        .then_some("use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed")
}
