//! People in the clusters of a random world, who edit, delete and create objects beside the agent.

use serde_json::{Value, json};
use sindri_agent::{AGENT_NAMESPACE, CHECKSUM_ANNOTATION, STACK_ANNOTATION, STACK_LABEL};

use super::pools::{NAMESPACES, PERSON_FINALIZER, PERSON_LABEL, choose, choose_weighted};
use super::random_stack::RandomStack;
use crate::rng::SeededRng;
use crate::scenario::{CreateObject, EditObject, ObjectRef, Step};

/// Action of a person in a cluster.
#[derive(Clone, Copy)]
pub enum Action {
    Edit,
    Delete,
    StripLabel,
    StripAnnotations,
    Hold,
    CreateForeign,
    CreateDeclaredName,
    ReplaceByForeign,
    DeleteNamespace,
    DeleteCrd,
    DeleteInventory,
}

const WEIGHTS: [(u64, Action); 11] = [
    (10, Action::Edit),
    (10, Action::Delete),
    (3, Action::StripLabel),
    (3, Action::StripAnnotations),
    (3, Action::Hold),
    (6, Action::CreateForeign),
    (3, Action::CreateDeclaredName),
    (4, Action::ReplaceByForeign),
    (3, Action::DeleteNamespace),
    (1, Action::DeleteCrd),
    (2, Action::DeleteInventory),
];

/// Makes the steps of one action on an object of a stack, or near it.
pub fn act(rng: &mut SeededRng, stack: &RandomStack, object: &str, clusters: &[String]) -> Vec<Step> {
    let cluster = choose(rng, clusters).clone();
    let action = choose_weighted(rng, &WEIGHTS);
    act_on(rng, stack, object, &cluster, action)
}

/// Makes the steps of this action in a cluster.
pub fn act_on(rng: &mut SeededRng, stack: &RandomStack, object: &str, cluster: &str, action: Action) -> Vec<Step> {
    let edit = |merge: Value| {
        Step::Edit(EditObject { cluster: cluster.to_owned(), object: object.to_owned(), merge, status: false })
    };
    let remove = |object: String| Step::Remove(ObjectRef { cluster: cluster.to_owned(), object });
    let step = match action {
        Action::Edit => edit(choose_edit(rng, object)),
        Action::Delete => remove(object.to_owned()),
        Action::StripLabel => edit(json!({"metadata": {"labels": {STACK_LABEL: null}}})),
        Action::StripAnnotations => {
            edit(json!({"metadata": {"annotations": {STACK_ANNOTATION: null, CHECKSUM_ANNOTATION: null}}}))
        }
        Action::Hold => edit(json!({"metadata": {"finalizers": [PERSON_FINALIZER]}})),
        Action::CreateForeign => {
            let name = format!("person-{}", choose(rng, &["a", "b"]));
            let namespace = *choose(rng, &NAMESPACES);
            create_foreign(cluster, &name, namespace)
        }
        Action::CreateDeclaredName => return create_declared_name(cluster, object).into_iter().collect(),
        // A client that knows nothing of the stack has an object of the same name.
        Action::ReplaceByForeign => {
            let created = create_declared_name(cluster, object);
            return created.map_or(Vec::new(), |created| vec![remove(object.to_owned()), created]);
        }
        Action::DeleteNamespace => remove(format!("Namespace {}", choose(rng, &NAMESPACES[1..]))),
        Action::DeleteCrd => remove("apiextensions.k8s.io/CustomResourceDefinition widgets.example.com".to_owned()),
        Action::DeleteInventory => remove(format!("ConfigMap {AGENT_NAMESPACE}/inventory-${{{}}}-0", stack.name)),
    };
    vec![step]
}

/// Makes the step that creates the object of a key, if it is a ConfigMap.
fn create_declared_name(cluster: &str, object: &str) -> Option<Step> {
    let (namespace, name) = object.strip_prefix("ConfigMap ")?.split_once('/')?;
    Some(create_foreign(cluster, name, namespace))
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

/// Makes the step that creates a ConfigMap of a person.
pub fn create_foreign(cluster: &str, name: &str, namespace: &str) -> Step {
    let yaml = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {PERSON_LABEL: "person"}},
        "data": {"n": "person"},
    });
    Step::Create(CreateObject { cluster: cluster.to_owned(), yaml: yaml.to_string() })
}
