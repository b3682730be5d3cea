//! Objects of a cluster as another client reads and changes them: over the Kubernetes API, by key.

use std::rc::Rc;

use http::Method;
use serde_json::{Value, json};
use sindri_model::{ObjectKey, yaml};

use super::served_kind::ServedKind;
use super::state::Interpreter;
use crate::environment::{ClusterCall, StepError};
use crate::expected_object::ExpectedObject;
use crate::object_key::{parse_object_key, with_default_namespace};
use crate::scenario::EditObject;

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

impl Interpreter<'_> {
    /// Sends a GET of another client.
    pub(super) fn get(&mut self, cluster: &str, target: &str) -> Result<(u16, Value), StepError> {
        self.call(cluster, Method::GET, target.to_owned(), JSON, Vec::new())
    }

    fn call(
        &mut self,
        cluster: &str,
        method: Method,
        target: String,
        content_type: &'static str,
        body: Vec<u8>,
    ) -> Result<(u16, Value), StepError> {
        self.environment.call_cluster(cluster, ClusterCall { method, target, content_type, body })
    }

    /// Lists the kinds of a cluster, each in its preferred version.
    pub(super) fn list_kinds(&mut self, cluster: &str) -> Result<Rc<Vec<ServedKind>>, StepError> {
        if let Some(kinds) = self.kinds.get(cluster) {
            return Ok(kinds.clone());
        }
        let kinds = Rc::new(self.discover_kinds(cluster)?);
        self.kinds.insert(cluster.to_owned(), kinds.clone());
        Ok(kinds)
    }

    fn discover_kinds(&mut self, cluster: &str) -> Result<Vec<ServedKind>, StepError> {
        let mut kinds = self.list_kinds_of_group(cluster, "", "/api/v1")?;
        let (_, groups) = self.get(cluster, "/apis")?;
        for group in groups["groups"].as_array().into_iter().flatten() {
            let name = group["name"].as_str().unwrap_or_default();
            let version = group["preferredVersion"]["version"].as_str().unwrap_or_default();
            kinds.extend(self.list_kinds_of_group(cluster, name, &format!("/apis/{name}/{version}"))?);
        }
        Ok(kinds)
    }

    fn list_kinds_of_group(&mut self, cluster: &str, group: &str, root: &str) -> Result<Vec<ServedKind>, StepError> {
        let (_, list) = self.get(cluster, root)?;
        let listable = |resource: &&Value| {
            resource["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|verb| verb == "list"))
        };
        let resources = list["resources"].as_array().into_iter().flatten().filter(listable);
        Ok(resources
            .filter_map(|resource| {
                let plural = resource["name"].as_str().filter(|name| !name.contains('/'))?;
                Some(ServedKind {
                    kind: resource["kind"].as_str()?.to_owned(),
                    group: group.to_owned(),
                    root: root.to_owned(),
                    plural: plural.to_owned(),
                    namespaced: resource["namespaced"].as_bool()?,
                    path: format!("{root}/{plural}"),
                })
            })
            .collect())
    }

    /// Returns the path of an object; `None` if the cluster does not serve its kind. A kind of Kubernetes itself that is not
    /// served is misspelled: no object of it would ever exist.
    fn find_path(&mut self, cluster: &str, key: &ObjectKey) -> Result<Option<String>, StepError> {
        let kinds = self.list_kinds(cluster)?;
        let found = kinds.iter().find(|served| served.is_of(key));
        let is_built_in = !key.group.contains('.') || key.group.ends_with(".k8s.io");
        if found.is_none() && is_built_in {
            return Err(StepError::Failed(format!("{key}: Kubernetes has no such kind; its group may be missing")));
        }
        Ok(found.map(|served| served.path_of(key)))
    }

    /// Reads an object; `None` if it does not exist.
    pub(super) fn read_object(&mut self, cluster: &str, key: &ObjectKey) -> Result<Option<Value>, StepError> {
        let Some(path) = self.find_path(cluster, key)? else { return Ok(None) };
        match self.get(cluster, &path)? {
            (200, object) => Ok(Some(object)),
            (404, _) => Ok(None),
            (status, body) => Err(StepError::Failed(format!("read {key} in {cluster}: {status} {body}"))),
        }
    }

    pub(super) fn create_object(&mut self, cluster: &str, text: &str) -> Result<(), StepError> {
        let documents = yaml::parse_documents(text).map_err(|errors| StepError::Failed(errors[0].to_string()))?;
        for document in documents {
            let key = with_default_namespace(&declared_key(&document.content)?);
            let path = self.find_path(cluster, &key)?;
            let path = path.ok_or_else(|| kind_not_served(cluster, &key))?;
            let collection = path.rsplit_once('/').map_or(path.as_str(), |(collection, _)| collection).to_owned();
            let body = document.content.to_string().into_bytes();
            let (status, response) = self.call(cluster, Method::POST, collection, JSON, body)?;
            check_success(&format!("create {key}"), status, &response)?;
        }
        Ok(())
    }

    pub(super) fn edit_object(&mut self, edit: &EditObject) -> Result<(), StepError> {
        let (cluster, key) = (&edit.cluster, parse_key(&self.substitute(&edit.object)?)?);
        let mut path = self.path(cluster, &key)?;
        if edit.status {
            path.push_str("/status");
        }
        let body = self.substitute(&edit.merge.to_string())?.into_bytes();
        let (status, response) = self.call(cluster, Method::PATCH, path, MERGE_PATCH, body)?;
        check_success(&format!("edit {key}"), status, &response)
    }

    pub(super) fn remove_object(&mut self, cluster: &str, object: &str) -> Result<(), StepError> {
        let key = parse_key(&self.substitute(object)?)?;
        let path = self.path(cluster, &key)?;
        let (status, response) = self.call(cluster, Method::DELETE, path, JSON, json!({}).to_string().into_bytes())?;
        check_success(&format!("remove {key}"), status, &response)
    }

    fn path(&mut self, cluster: &str, key: &ObjectKey) -> Result<String, StepError> {
        self.find_path(cluster, key)?.ok_or_else(|| kind_not_served(cluster, key))
    }

    /// Returns true if the cluster has an object as it is declared.
    pub(super) fn is_as_declared(&mut self, cluster: &str, declared: &ExpectedObject) -> Result<bool, StepError> {
        let live = self.read_object(cluster, &declared.key)?;
        // An object that is applied once may be gone; a scenario checks that it existed.
        if live.is_none() && declared.is_applied_once() {
            return Ok(true);
        }
        Ok(live.is_some_and(|live| declared.is_met_by(&live)))
    }
}

fn kind_not_served(cluster: &str, key: &ObjectKey) -> StepError {
    StepError::Rejected(format!("{cluster} does not serve the kind of {key}"))
}

fn check_success(request: &str, status: u16, response: &Value) -> Result<(), StepError> {
    if status < 300 { Ok(()) } else { Err(StepError::Rejected(format!("{request}: {status} {}", response["message"]))) }
}

fn declared_key(manifest: &Value) -> Result<ObjectKey, StepError> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&manifest["apiVersion"]);
    let group = api_version.split_once('/').map_or(String::new(), |(group, _)| group.to_owned());
    let metadata = &manifest["metadata"];
    let namespace = metadata["namespace"].as_str().map(str::to_owned);
    Ok(ObjectKey { group, kind: text(&manifest["kind"]), namespace, name: text(&metadata["name"]) })
}

/// Parses a key of a scenario: `apps/Deployment shop/web`, `Namespace shop`.
pub(super) fn parse_key(text: &str) -> Result<ObjectKey, StepError> {
    parse_object_key(text).map_err(StepError::Failed)
}
