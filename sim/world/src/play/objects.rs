//! Objects of a cluster as someone else sees and changes them: over the Kubernetes API, by key.

use http::Method;
use serde_json::{Value, json};
use sindri_agent::Ignored;
use sindri_model::{DeclaredObject, ObjectKey, yaml};

use super::Play;
use crate::ledger::placed;
use crate::scenario::ChangeObject;
use crate::stage::{ClusterCall, Trouble};

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// A kind that a cluster serves.
pub(crate) struct ServedKind {
    pub kind: String,
    group: String,
    root: String,
    plural: String,
    namespaced: bool,
    /// All objects of it.
    pub path: String,
}

impl Play<'_> {
    /// Someone else reads.
    pub(crate) fn get(&mut self, cluster: &str, target: &str) -> Result<(u16, Value), Trouble> {
        self.call(cluster, Method::GET, target.to_owned(), JSON, Vec::new())
    }

    fn call(
        &mut self,
        cluster: &str,
        method: Method,
        target: String,
        content_type: &'static str,
        body: Vec<u8>,
    ) -> Result<(u16, Value), Trouble> {
        self.stage.call_cluster(cluster, ClusterCall { method, target, content_type, body })
    }

    /// Every kind of a cluster, in its preferred version.
    pub(crate) fn kinds_of(&mut self, cluster: &str) -> Result<Vec<ServedKind>, Trouble> {
        let mut kinds = self.kinds_at(cluster, "", "/api/v1")?;
        let (_, groups) = self.get(cluster, "/apis")?;
        for group in groups["groups"].as_array().into_iter().flatten() {
            let name = group["name"].as_str().unwrap_or_default();
            let version = group["preferredVersion"]["version"].as_str().unwrap_or_default();
            kinds.extend(self.kinds_at(cluster, name, &format!("/apis/{name}/{version}"))?);
        }
        Ok(kinds)
    }

    fn kinds_at(&mut self, cluster: &str, group: &str, root: &str) -> Result<Vec<ServedKind>, Trouble> {
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

    /// The path of an object; `None` when the cluster does not serve its kind.
    fn path(&mut self, cluster: &str, key: &ObjectKey) -> Result<Option<String>, Trouble> {
        let kinds = self.kinds_of(cluster)?;
        let found = kinds.iter().find(|served| served.kind == key.kind && served.group == key.group);
        Ok(found.map(|served| match &key.namespace {
            Some(namespace) if served.namespaced => {
                format!("{}/namespaces/{namespace}/{}/{}", served.root, served.plural, key.name)
            }
            _ => format!("{}/{}/{}", served.root, served.plural, key.name),
        }))
    }

    /// An object as it is now.
    pub(crate) fn read_object(&mut self, cluster: &str, key: &ObjectKey) -> Result<Option<Value>, Trouble> {
        let Some(path) = self.path(cluster, key)? else { return Ok(None) };
        match self.get(cluster, &path)? {
            (200, object) => Ok(Some(object)),
            (404, _) => Ok(None),
            (status, body) => Err(Trouble::Broken(format!("read {key} of {cluster}: {status} {body}"))),
        }
    }

    pub(super) fn create_object(&mut self, cluster: &str, text: &str) -> Result<(), Trouble> {
        let documents = yaml::parse_documents(text).map_err(|errors| Trouble::Broken(errors[0].to_string()))?;
        for document in documents {
            let key = placed(&declared_key(&document.content)?);
            let path = self.path(cluster, &key)?;
            let path = path.ok_or_else(|| Trouble::Broken(format!("{cluster} does not serve the kind of {key}")))?;
            let collection = path.rsplit_once('/').map_or(path.as_str(), |(collection, _)| collection).to_owned();
            let body = document.content.to_string().into_bytes();
            let (status, answer) = self.call(cluster, Method::POST, collection, JSON, body)?;
            expect_done(&format!("create {key}"), status, &answer)?;
        }
        Ok(())
    }

    pub(super) fn edit_object(&mut self, change: &ChangeObject) -> Result<(), Trouble> {
        let (cluster, key) = (&change.cluster, parse_key(&change.object)?);
        let mut path = self.known_path(cluster, &key)?;
        if change.status {
            path.push_str("/status");
        }
        let body = change.merge.to_string().into_bytes();
        let (status, answer) = self.call(cluster, Method::PATCH, path, MERGE_PATCH, body)?;
        expect_done(&format!("edit {key}"), status, &answer)
    }

    pub(super) fn remove_object(&mut self, cluster: &str, object: &str) -> Result<(), Trouble> {
        let key = parse_key(object)?;
        let path = self.known_path(cluster, &key)?;
        let (status, answer) = self.call(cluster, Method::DELETE, path, JSON, json!({}).to_string().into_bytes())?;
        expect_done(&format!("remove {key}"), status, &answer)
    }

    fn known_path(&mut self, cluster: &str, key: &ObjectKey) -> Result<String, Trouble> {
        self.path(cluster, key)?.ok_or_else(|| Trouble::Broken(format!("{cluster} does not serve the kind of {key}")))
    }

    /// Whether the cluster holds a declared object as it is declared.
    pub(crate) fn is_in_place(&mut self, cluster: &str, declared: &DeclaredObject) -> Result<bool, Trouble> {
        let live = self.read_object(cluster, &placed(&declared.key))?;
        Ok(live.is_some_and(|live| {
            let mut wanted = declared.manifest.clone();
            // What it leaves to others may have any value.
            Ignored::of(&wanted["metadata"]).keep_live(&mut wanted, &live);
            crate::oracle::holds(&live, &wanted)
        }))
    }
}

fn expect_done(what: &str, status: u16, answer: &Value) -> Result<(), Trouble> {
    if status < 300 { Ok(()) } else { Err(Trouble::Broken(format!("{what}: {status} {}", answer["message"]))) }
}

fn declared_key(manifest: &Value) -> Result<ObjectKey, Trouble> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&manifest["apiVersion"]);
    let group = api_version.split_once('/').map_or(String::new(), |(group, _)| group.to_owned());
    let metadata = &manifest["metadata"];
    let namespace = metadata["namespace"].as_str().map(str::to_owned);
    Ok(ObjectKey { group, kind: text(&manifest["kind"]), namespace, name: text(&metadata["name"]) })
}

/// Reads a key as it is printed: `apps/Deployment shop/web`, `Namespace shop`.
pub(crate) fn parse_key(text: &str) -> Result<ObjectKey, Trouble> {
    let wrong = || Trouble::Broken(format!("{text:?} is not an object: write [GROUP/]KIND [NAMESPACE/]NAME"));
    let (kind, name) = text.split_once(' ').ok_or_else(wrong)?;
    let (group, kind) = kind.rsplit_once('/').unwrap_or(("", kind));
    let (namespace, name) = match name.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, name),
    };
    if kind.is_empty() || name.is_empty() {
        return Err(wrong());
    }
    Ok(ObjectKey { group: group.to_owned(), kind: kind.to_owned(), namespace, name: name.to_owned() })
}
