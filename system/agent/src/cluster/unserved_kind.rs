//! Proof that a kind has no objects any more, of which discovery lists no version. Kinds that are served, and single objects, are read as
//! `objects` does.

use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::discovery::is_aggregated_group;
use super::error::ClusterError;
use super::requests::{ApiClient, ApiRequest, METADATA, METADATA_LIST, Operation};
use super::resource::{ApiResource, is_built_in_group};

/// A kind of which no version is served.
pub(super) struct UnservedKind<'a> {
    /// The kind in the version in which it was served.
    pub known: &'a ApiResource,
    pub api: &'a ApiClient,
    /// Namespace of an agent that has permissions in no other.
    pub namespace: Option<&'a str>,
    /// Namespace of the inventories.
    pub agent_namespace: &'a str,
}

impl UnservedKind<'_> {
    /// Fails unless it is proved that there are no objects. The custom resources of a CRD are deleted with it; an aggregated API server
    /// may have its objects although its APIService was deleted.
    pub async fn check_objects_are_gone(&self) -> Result<(), ClusterError> {
        if self.known.is_aggregated || is_aggregated_group(self.api, &self.known.group).await? {
            return Err(self.not_served(self.describe_aggregated()));
        }
        self.check_crd_is_gone().await?;
        if is_built_in_group(&self.known.group) { self.check_path_is_gone().await } else { Ok(()) }
    }

    /// Fails if the server knows the path of a built-in kind that discovery does not list, for example right after its start.
    async fn check_path_is_gone(&self) -> Result<(), ClusterError> {
        let namespace = self.namespace.filter(|_| self.known.namespaced);
        let operation = Operation::Other(format!("list {}", self.known.plural));
        let path = format!("{}?limit=1", self.known.path(namespace));
        let request = ApiRequest::get(operation, path).accepting(METADATA_LIST);
        match self.api.send_for_response(&request).await {
            Ok(_) => Err(self.not_served("discovery does not list it, although its objects can be listed".to_owned())),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) if error.is_forbidden() => {
                Err(error
                    .with_hint("no version of the kind is served, and it must be listed to know whether it is gone"))
            }
            Err(error) => Err(error),
        }
    }

    /// Fails if the CRD exists although no version is served: its custom resources are still stored.
    async fn check_crd_is_gone(&self) -> Result<(), ClusterError> {
        let crds = Arc::new(ApiResource::from_cluster_type::<CustomResourceDefinition>());
        let key = crds.object_key(None, &format!("{}.{}", self.known.plural, self.known.group));
        let request = ApiRequest::get(Operation::Object("read", &key), crds.object_path(&key)).accepting(METADATA);
        match self.api.send_for_response(&request).await {
            Ok(_) => Err(self.not_served(format!("{key} exists, and no version of it is served"))),
            Err(error) if error.proves_absence(&key.name) => Ok(()),
            // A kind of Kubernetes itself has no CRD.
            Err(error) if error.is_forbidden() && is_built_in_group(&self.known.group) => Ok(()),
            Err(error) if error.is_forbidden() => Err(error
                .with_hint("no version of the kind is served, and its CRD must be read to know whether it is gone")),
            Err(error) => Err(error),
        }
    }

    /// Describes why nothing is known about the objects of an aggregated API, and what to do.
    fn describe_aggregated(&self) -> String {
        let (service, namespace) = (format!("{}.{}", self.known.version, self.known.group), self.agent_namespace);
        format!(
            "it was served by an aggregated API, and nothing proves that its objects are gone; register the APIService {service} \
             again, or, if its server was uninstalled for good, delete the inventory of the stack: the ConfigMaps in {namespace} \
             that have the id of the stack as the label sindri.dev/inventory"
        )
    }

    fn not_served(&self, cause: String) -> ClusterError {
        let operation = format!("find the kind {} of {}", self.known.kind, self.known.api_version()).into();
        ClusterError::NotServed { operation, cause }
    }
}
