//! The end of a random world: people clean up, operators decide what is held, and what then still cannot be applied has
//! a reason in the cluster.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::state::Interpreter;
use sindri_model::ObjectKey;

use crate::declared_fields::has_declared_fields;
use crate::environment::StepError;
use crate::expected_object::ExpectedObject;
use crate::expected_state::SubmittedRevision;
use crate::scenario::{Activation, EditObject, StackAnnotation};
use crate::worlds::{INVALID_ANNOTATION, PERSON_FINALIZER, PERSON_LABEL};

impl Interpreter<'_> {
    /// Activates every agent, removes the policies of the stacks, submits stacks again that must be, and lets people clean up
    /// after themselves.
    pub fn heal_world(&mut self) -> Result<(), StepError> {
        for agent in self.scenario.fleet.agents.clone() {
            self.activate(&Activation { agent: agent.clone(), active: true })?;
            self.clean_up(&agent)?;
        }
        let policies: Vec<(String, String)> = {
            let expected = self.expected.borrow();
            let living = expected.stacks.iter().filter(|(_, stack)| !stack.is_deleted);
            living.flat_map(|(name, stack)| stack.policies.keys().map(move |key| (name.clone(), key.clone()))).collect()
        };
        for (stack, key) in policies {
            self.annotate(&StackAnnotation { stack, key, value: None })?;
        }
        self.submit_again()
    }

    /// Removes what people left in a cluster: objects of their own, and finalizers.
    pub fn clean_up(&mut self, cluster: &str) -> Result<(), StepError> {
        for kind in self.list_kinds(cluster)?.iter() {
            let (_, list) = self.get(cluster, &kind.path)?;
            for item in list["items"].as_array().into_iter().flatten() {
                let key = kind.key_of(item);
                let finalizers = item["metadata"]["finalizers"].as_array();
                if finalizers.into_iter().flatten().any(|finalizer| finalizer == PERSON_FINALIZER) {
                    let merge = json!({"metadata": {"finalizers": null}});
                    let edit = EditObject { cluster: cluster.to_owned(), object: key.clone(), merge, status: false };
                    tolerate(self.edit_object(&edit))?;
                }
                if item["metadata"]["labels"][PERSON_LABEL].is_string() {
                    tolerate(self.remove_object(cluster, &key))?;
                }
            }
        }
        Ok(())
    }

    /// Approves every held deletion.
    pub fn approve_everything(&mut self) -> Result<(), StepError> {
        let pending = self.list_pending_approvals()?;
        pending.into_iter().try_for_each(|approval| tolerate(self.decide(approval, true)))
    }

    /// Describes why a revision cannot be applied in a cluster; `None` if nothing there prevents it.
    pub(super) fn find_reason_against(
        &mut self,
        stack: &str,
        agent: &str,
        revision: &SubmittedRevision,
    ) -> Result<Option<String>, StepError> {
        if revision.objects.is_empty() {
            return Ok(Some("the bundle declares nothing".to_owned()));
        }
        let keys: BTreeSet<&ObjectKey> = revision.objects.iter().map(|object| &object.key).collect();
        if keys.len() < revision.objects.len() {
            return Ok(Some("an object is declared twice".to_owned()));
        }
        if self.read_stack(stack, |found| self.expected.borrow().has_needed_container(found, agent))? {
            return Ok(Some(
                "an object is declared in a namespace, or of a kind, that the stack no longer declares".to_owned(),
            ));
        }
        if let Some(other) = self.find_failed_content(stack, agent)? {
            return Ok(Some(format!(
                "stack {other}, which has failed, may have objects in what the stack no longer declares"
            )));
        }
        if let Some(shared) = self.find_shared_object(stack, agent, revision) {
            return Ok(Some(shared));
        }
        let declared: BTreeSet<String> = revision
            .objects
            .iter()
            .filter(|object| object.key.kind == "Namespace")
            .map(|o| o.key.name.clone())
            .collect();
        for object in &revision.objects {
            if !object.manifest["metadata"]["annotations"][INVALID_ANNOTATION].is_null() {
                return Ok(Some(format!("{} is invalid on purpose", object.key)));
            }
            if let Some(namespace) = object.key.namespace.as_deref().filter(|name| !declared.contains(*name))
                && self.read_namespace(agent, namespace)?.is_none()
            {
                return Ok(Some(format!("there is no namespace {namespace}")));
            }
            if !self.serves(agent, object)? {
                return Ok(Some(format!("the kind of {} is not served", object.key)));
            }
            if let Some(live) = self.read_object(agent, &object.key)?
                && !object.may_be_replaced()
                && let Some(field) = find_immutable_change(&live, &object.manifest)
            {
                return Ok(Some(format!("{field} of {} is immutable", object.key)));
            }
        }
        Ok(None)
    }

    /// Finds an object that another stack declares in the same cluster.
    fn find_shared_object(&self, stack: &str, agent: &str, revision: &SubmittedRevision) -> Option<String> {
        let expected = self.expected.borrow();
        let others = expected.stacks.iter().filter(|(name, _)| *name != stack);
        let mut others = others.filter_map(|(name, other)| Some((name, other, other.may_exist_at(agent)?)));
        others.find_map(|(name, other, newest)| {
            // A bundle that cannot be read may still declare each object that the stack has.
            let may_declare =
                |key: &ObjectKey| newest.declares(key) || newest.objects.is_empty() && other.has_ever_declared(key);
            let shared = revision.objects.iter().find(|object| may_declare(&object.key))?;
            Some(format!("{} is declared by stack {name} too", shared.key))
        })
    }

    fn read_namespace(&mut self, cluster: &str, name: &str) -> Result<Option<Value>, StepError> {
        match self.get(cluster, &format!("/api/v1/namespaces/{name}"))? {
            (200, namespace) => Ok(Some(namespace)),
            _ => Ok(None),
        }
    }

    fn serves(&mut self, cluster: &str, object: &ExpectedObject) -> Result<bool, StepError> {
        Ok(self.list_kinds(cluster)?.iter().any(|kind| kind.is_of(&object.key)))
    }
}

/// Objects may be gone in the meantime.
fn tolerate(result: Result<(), StepError>) -> Result<(), StepError> {
    match result {
        Err(StepError::Rejected(_)) => Ok(()),
        other => other,
    }
}

/// Finds an immutable field in which a manifest differs from the live object.
fn find_immutable_change(live: &Value, manifest: &Value) -> Option<&'static str> {
    let fields: &[&'static str] = match manifest["kind"].as_str()? {
        "Deployment" | "DaemonSet" => &["/spec/selector"],
        "StatefulSet" => &["/spec/selector", "/spec/serviceName"],
        "Job" => &["/spec/template/spec/containers/0/image"],
        "StorageClass" => &["/provisioner"],
        // Nothing of an immutable Secret may change.
        "Secret" if live["immutable"] == true && !has_declared_fields(live, manifest) => return Some("data"),
        "Secret" => &["/type"],
        "PersistentVolumeClaim" => &["/spec/accessModes"],
        _ => &[],
    };
    let differs = |field: &&&str| match **field {
        // A Secret without a type is Opaque, and nothing declares the type of such a live Secret.
        "/type" => live["type"].as_str() != Some(manifest["type"].as_str().unwrap_or("Opaque")),
        field => manifest.pointer(field).is_some_and(|declared| live.pointer(field) != Some(declared)),
    };
    fields.iter().find(differs).copied()
}
