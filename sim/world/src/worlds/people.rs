//! People in the clusters of a random world, who edit, delete and create objects beside the agent.

use serde_json::{Value, json};
use sindri_agent::{AGENT_NAMESPACE, CHECKSUM_ANNOTATION, STACK_ANNOTATION, STACK_LABEL};

use super::pools::{NAMESPACES, PERSON_FINALIZER, PERSON_LABEL, choose, choose_weighted};
use super::random_stack::RandomStack;
use crate::rng::SeededRng;
use crate::scenario::{CreateObject, EditObject, ObjectRef, Step};

#[derive(Clone, Copy)]
enum Action {
    Edit,
    Delete,
    StripLabel,
    StripAnnotations,
    Hold,
    CreateForeign,
    CreateDeclaredName,
    DeleteNamespace,
    DeleteCrd,
    DeleteInventory,
}

const WEIGHTS: [(u64, Action); 10] = [
    (10, Action::Edit),
    (10, Action::Delete),
    (3, Action::StripLabel),
    (3, Action::StripAnnotations),
    (3, Action::Hold),
    (6, Action::CreateForeign),
    (3, Action::CreateDeclaredName),
    (3, Action::DeleteNamespace),
    (1, Action::DeleteCrd),
    (2, Action::DeleteInventory),
];

/// Makes the step of one action on an object of a stack, or near it.
pub fn act(rng: &mut SeededRng, stack: &RandomStack, clusters: &[String]) -> Option<Step> {
    let cluster = choose(rng, clusters).clone();
    let keys = stack.object_keys();
    if keys.is_empty() {
        return None;
    }
    let object = choose(rng, &keys).clone();
    let edit = |merge: Value| {
        Step::Edit(EditObject { cluster: cluster.clone(), object: object.clone(), merge, status: false })
    };
    let remove = |object: String| Step::Remove(ObjectRef { cluster: cluster.clone(), object });
    Some(match choose_weighted(rng, &WEIGHTS) {
        Action::Edit => edit(choose_edit(rng, &object)),
        Action::Delete => remove(object),
        Action::StripLabel => edit(json!({"metadata": {"labels": {STACK_LABEL: null}}})),
        Action::StripAnnotations => {
            edit(json!({"metadata": {"annotations": {STACK_ANNOTATION: null, CHECKSUM_ANNOTATION: null}}}))
        }
        Action::Hold => edit(json!({"metadata": {"finalizers": [PERSON_FINALIZER]}})),
        Action::CreateForeign => {
            let name = format!("person-{}", choose(rng, &["a", "b"]));
            let namespace = *choose(rng, &NAMESPACES);
            create(&cluster, &name, namespace)
        }
        Action::CreateDeclaredName => {
            let (kind, name) = object.split_once(' ')?;
            let (namespace, name) = name.split_once('/').filter(|_| kind == "ConfigMap")?;
            create(&cluster, name, namespace)
        }
        Action::DeleteNamespace => remove(format!("Namespace {}", choose(rng, &NAMESPACES[1..]))),
        Action::DeleteCrd => remove("apiextensions.k8s.io/CustomResourceDefinition widgets.example.com".to_owned()),
        Action::DeleteInventory => remove(format!("ConfigMap {AGENT_NAMESPACE}/inventory-${{{}}}-0", stack.name)),
    })
}

fn choose_edit(rng: &mut SeededRng, object: &str) -> Value {
    let kind = object.split(' ').next().unwrap_or_default();
    match kind {
        "ConfigMap" => json!({"data": {"n": "edited"}}),
        "apps/Deployment" | "apps/StatefulSet" => json!({"spec": {"replicas": rng.between(0, 3)}}),
        "example.com/Widget" => json!({"spec": {"size": 0}}),
        _ => json!({"metadata": {"labels": {"example.com/n": "edited"}}}),
    }
}

fn create(cluster: &str, name: &str, namespace: &str) -> Step {
    let yaml = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {PERSON_LABEL: "person"}},
        "data": {"n": "person"},
    });
    Step::Create(CreateObject { cluster: cluster.to_owned(), yaml: yaml.to_string() })
}
