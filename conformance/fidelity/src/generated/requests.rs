//! Generates one request of each verb. Values of responses are kept in variables for later requests.

use serde_json::{Value, json};

use super::draft::Draft;
use super::objects::{MANAGERS, SequenceObject, whole_object};
use super::patches;
use super::random::RandomSource;

/// Percentage of writes with a dry run.
const DRY_RUN_PERCENT: u32 = 8;
/// resourceVersion that no server reaches, so that normalisation keeps it.
const NO_VERSION: &str = "4000000000";

/// Query of a request.
struct Query(Vec<String>);

impl Query {
    fn add(&mut self, part: impl Into<String>) {
        self.0.push(part.into());
    }

    fn append_to(&self, path: &str) -> String {
        if self.0.is_empty() { path.to_owned() } else { format!("{path}?{}", self.0.join("&")) }
    }

    fn is_dry(&self) -> bool {
        self.0.iter().any(|part| part.starts_with("dryRun"))
    }
}

/// Returns an owner reference to another object of the sequence, which may be deleted.
fn owner_reference(draft: &mut Draft<'_>, not: usize) -> Option<Value> {
    let others: Vec<SequenceObject> = draft
        .objects
        .iter()
        .enumerate()
        .filter(|(index, object)| *index != not && object.was_created)
        .map(|(_, object)| object.clone())
        .collect();
    if others.is_empty() {
        return None;
    }
    let other = draft.random.one(&others).clone();
    let uid = format!("${{uid-{}}}", other.suffix);
    let mut owner =
        json!({"apiVersion": other.kind.api_version, "kind": other.kind.name, "name": other.name, "uid": uid});
    draft.random.maybe_set(30, &mut owner, "controller", |random| json!(random.percent(70)));
    draft.random.maybe_set(30, &mut owner, "blockOwnerDeletion", |random| json!(random.percent(70)));
    Some(json!([owner]))
}

fn write_query(random: &mut RandomSource, manager: u32) -> Query {
    let mut query = Query(Vec::new());
    if random.percent(manager) {
        query.add(format!("fieldManager={}", random.one(&MANAGERS)));
    }
    if random.percent(DRY_RUN_PERCENT) {
        query.add("dryRun=All");
    }
    if random.percent(10) {
        query.add(format!("fieldValidation={}", random.one(&["Strict", "Warn", "Ignore"])));
    }
    query
}

/// Returns the variables of an object that a response sets.
fn variables(object: &SequenceObject) -> Value {
    let (version, uid) = (format!("version-{}", object.suffix), format!("uid-{}", object.suffix));
    json!({version: "/metadata/resourceVersion", uid: "/metadata/uid"})
}

fn push_step(draft: &mut Draft<'_>, index: usize, query: &Query, mut step: Value) {
    if !query.is_dry() {
        step["keep"] = variables(&draft.objects[index]);
    }
    draft.steps.push(step);
}

fn mark_created(draft: &mut Draft<'_>, index: usize, query: &Query) {
    if !query.is_dry() {
        draft.objects[index].exists = true;
        draft.objects[index].was_created = true;
    }
}

pub(super) fn create(draft: &mut Draft<'_>, index: usize) {
    let object = draft.objects[index].clone();
    let mut body = whole_object(draft.random, &object);
    if draft.random.percent(10)
        && let Some(owner) = owner_reference(draft, index)
    {
        body["metadata"]["ownerReferences"] = owner;
    }
    let query = write_query(draft.random, 50);
    let send = format!("POST {}", query.append_to(&object.collection()));
    // At most one generated name in a sequence: two would be sorted in a random order.
    let has_generated_name = draft.steps.iter().any(|step| step["body"]["metadata"].get("generateName").is_some());
    if object.kind.namespaced && !has_generated_name && draft.random.percent(4) {
        body["metadata"]["name"] = Value::Null;
        body["metadata"]["generateName"] = json!("made-");
        draft.steps.push(json!({"step": "create with a generated name", "send": send, "body": body}));
        return;
    }
    push_step(draft, index, &query, json!({"step": "create", "send": send, "body": body}));
    mark_created(draft, index, &query);
}

pub(super) fn apply(draft: &mut Draft<'_>, index: usize) {
    let object = draft.objects[index].clone();
    let mut body = whole_object(draft.random, &object);
    if object.exists && draft.random.percent(40) {
        patches::remove_some_fields(draft.random, &mut body);
    }
    if draft.random.percent(8)
        && let Some(owner) = owner_reference(draft, index)
    {
        body["metadata"]["ownerReferences"] = owner;
    }
    if object.was_created && draft.random.percent(4) {
        body["metadata"]["resourceVersion"] = json!(format!("${{version-{}}}", object.suffix));
    }
    let mut query = write_query(draft.random, 0);
    query.add(format!("fieldManager={}", draft.random.one(&MANAGERS)));
    if draft.random.percent(55) {
        query.add("force=true");
    }
    let send = format!("PATCH {}", query.append_to(&object.path()));
    push_step(draft, index, &query, json!({"step": "apply", "send": send, "type": "apply", "body": body}));
    mark_created(draft, index, &query);
}

pub(super) fn update(draft: &mut Draft<'_>, index: usize) {
    let object = draft.objects[index].clone();
    let mut body = whole_object(draft.random, &object);
    if object.was_created && draft.random.percent(75) {
        body["metadata"]["resourceVersion"] = json!(format!("${{version-{}}}", object.suffix));
    } else if draft.random.percent(15) {
        body["metadata"]["resourceVersion"] = json!(NO_VERSION);
    }
    if object.was_created && draft.random.percent(20) {
        body["metadata"]["uid"] = json!(format!("${{uid-{}}}", object.suffix));
    }
    if draft.random.percent(5) {
        body["metadata"]["managedFields"] = draft.random.one(&[json!([]), json!([{}])]).clone();
    }
    let query = write_query(draft.random, 50);
    let send = format!("PUT {}", query.append_to(&object.path()));
    push_step(draft, index, &query, json!({"step": "update", "send": send, "body": body}));
}

pub(super) fn merge(draft: &mut Draft<'_>, index: usize) {
    let object = draft.objects[index].clone();
    let object = whole_object(draft.random, &object);
    let body = patches::merge(draft.random, object);
    patch(draft, index, "merge", body);
}

pub(super) fn strategic(draft: &mut Draft<'_>, index: usize) {
    let object = draft.objects[index].clone();
    if object.kind.custom && draft.random.percent(95) {
        return merge(draft, index);
    }
    let object = whole_object(draft.random, &object);
    let body = patches::strategic(draft.random, object);
    patch(draft, index, "strategic", body);
}

pub(super) fn json(draft: &mut Draft<'_>, index: usize) {
    let object = draft.objects[index].clone();
    let object = whole_object(draft.random, &object);
    let body = patches::json(draft.random, &object);
    patch(draft, index, "json-patch", body);
}

fn patch(draft: &mut Draft<'_>, index: usize, patch_type: &str, body: Value) {
    let object = draft.objects[index].clone();
    let query = write_query(draft.random, 50);
    let send = format!("PATCH {}", query.append_to(&object.path()));
    push_step(
        draft,
        index,
        &query,
        json!({"step": format!("{patch_type} patch"), "send": send, "type": patch_type, "body": body}),
    );
}

pub(super) fn get(draft: &mut Draft<'_>, index: usize) {
    let object = draft.objects[index].clone();
    let mut step = json!({"step": "get", "send": format!("GET {}", object.path()), "keep": variables(&object)});
    if object.kind.name != "Service" && draft.random.percent(15) {
        step["accept"] =
            json!(draft.random.one(&["table", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",]));
    }
    draft.steps.push(step);
}

pub(super) fn list(draft: &mut Draft<'_>, index: usize) {
    let object = draft.objects[index].clone();
    let path = object.collection();
    let mut query = Query(Vec::new());
    let selectors = ["app%3Da", "app+in+%28a%2Cb%29", "%21tier", "app%21%3Da", "tier"];
    match (object.kind.namespaced, draft.random.percent(50)) {
        (false, _) => query.add("labelSelector=of%3D${namespace}"),
        (true, true) => query.add(format!("labelSelector={}", draft.random.one(&selectors))),
        (true, false) => {}
    }
    if draft.random.percent(25) {
        let fields = ["metadata.name%3Da", "metadata.name%21%3Da", "metadata.namespace%3D${namespace}"];
        query.add(format!("fieldSelector={}", draft.random.one(&fields)));
    }
    // Only in namespaces: in the whole cluster the pages depend on other sequences.
    // At most once in a sequence: tokens of equal pages are equal only without writes in between.
    let is_paged = draft.steps.iter().any(|step| step["send"].as_str().is_some_and(|line| line.contains("limit=1")));
    if object.kind.namespaced && !is_paged && draft.random.percent(25) {
        let first = query.0.clone();
        query.add("limit=1");
        let send = format!("GET {}", query.append_to(&path));
        draft.steps.push(json!({"step": "list one", "send": send, "keep": {"continue": "/metadata/continue"}}));
        let mut query = Query(first);
        query.add("limit=1");
        query.add("continue=${continue}");
        let send = format!("GET {}", query.append_to(&path));
        draft.steps.push(json!({"step": "list on", "send": send, "keep": {"continue": "/metadata/continue"}}));
        return;
    }
    let mut step = json!({"step": "list", "send": format!("GET {}", query.append_to(&path))});
    // Tables of Services contain random ports.
    if object.kind.name != "Service" && draft.random.percent(15) {
        step["accept"] =
            json!(draft.random.one(&["table", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"]));
    }
    draft.steps.push(step);
}

pub(super) fn delete(draft: &mut Draft<'_>, index: usize) {
    let object = draft.objects[index].clone();
    let mut query = Query(Vec::new());
    if draft.random.percent(DRY_RUN_PERCENT) {
        query.add("dryRun=All");
    }
    let mut step = json!({"step": "delete"});
    let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    let policies = ["Background", "Background", "Foreground", "Orphan"];
    if draft.random.percent(20) {
        query.add(format!("propagationPolicy={}", draft.random.one(&policies)));
    } else if draft.random.percent(25) {
        options["propagationPolicy"] = json!(draft.random.one(&policies));
        step["body"] = options.clone();
    }
    if object.was_created && draft.random.percent(25) {
        let conditions = [
            json!({"uid": format!("${{uid-{}}}", object.suffix)}),
            json!({"uid": "0b1f2c3d-0000-4000-8000-00000000000a"}),
            json!({"resourceVersion": format!("${{version-{}}}", object.suffix)}),
            json!({"resourceVersion": "1"}),
        ];
        options["preconditions"] = draft.random.one(&conditions).clone();
        step["body"] = options;
    } else if draft.random.percent(10) {
        query.add("gracePeriodSeconds=0");
    }
    step["send"] = json!(format!("DELETE {}", query.append_to(&object.path())));
    draft.steps.push(step);
    if !query.is_dry() {
        draft.objects[index].exists = false;
    }
}

pub(super) fn delete_collection(draft: &mut Draft<'_>, index: usize) {
    let object = draft.objects[index].clone();
    let mut query = Query(Vec::new());
    if !object.kind.namespaced {
        query.add("labelSelector=of%3D${namespace}");
    } else if draft.random.percent(60) {
        query.add(format!("labelSelector=app%3D{}", draft.random.one(&["a", "b"])));
    }
    if draft.random.percent(DRY_RUN_PERCENT) {
        query.add("dryRun=All");
    }
    let send = format!("DELETE {}", query.append_to(&object.collection()));
    draft.steps.push(json!({"step": "delete the collection", "send": send}));
    draft.objects[index].exists &= draft.random.percent(50);
}

/// Writes a subresource, or metadata for kinds without one.
pub(super) fn subresource(draft: &mut Draft<'_>, index: usize) {
    let object = draft.objects[index].clone();
    // A patch of the status of a missing Service creates an incomplete one.
    let creates = object.kind.name == "Service" && !object.exists;
    if object.kind.subresources.is_empty() || creates {
        return metadata_only(draft, index);
    }
    match *draft.random.one(object.kind.subresources) {
        "scale" => scale(draft, index),
        _ => status(draft, index),
    }
}

fn metadata_only(draft: &mut Draft<'_>, index: usize) {
    let object = draft.objects[index].clone();
    let bodies = [
        json!({"metadata": {"finalizers": ["example.com/one"]}}),
        json!({"metadata": {"finalizers": []}}),
        json!({"metadata": {"finalizers": null}}),
        json!({"metadata": {"labels": {"app": null}}}),
        json!({"metadata": {"annotations": {"note": "3"}}}),
        json!({"metadata": {"ownerReferences": null}}),
    ];
    let body = draft.random.one(&bodies).clone();
    let query = write_query(draft.random, 40);
    let send = format!("PATCH {}", query.append_to(&object.path()));
    push_step(draft, index, &query, json!({"step": "patch metadata", "send": send, "type": "merge", "body": body}));
}

fn status(draft: &mut Draft<'_>, index: usize) {
    let object = draft.objects[index].clone();
    let status = (object.kind.status)(draft.random);
    let query = write_query(draft.random, 50);
    let path = format!("{}/status", object.path());
    let step = match draft.random.between(0, 9) {
        0..=3 => {
            let body = json!({ "status": status });
            json!({"step": "merge patch of the status", "send": format!("PATCH {}", query.append_to(&path)), "type": "merge", "body": body})
        }
        4..=6 => {
            let mut body = json!({"apiVersion": object.kind.api_version, "kind": object.kind.name, "status": status});
            body["metadata"] = json!({ "name": object.name });
            let mut query = write_query(draft.random, 0);
            query.add(format!("fieldManager={}", draft.random.one(&MANAGERS)));
            query.add("force=true");
            json!({"step": "apply the status", "send": format!("PATCH {}", query.append_to(&path)), "type": "apply", "body": body})
        }
        7..=8 => {
            let mut body = whole_object(draft.random, &object);
            body["status"] = status;
            if object.was_created {
                body["metadata"]["resourceVersion"] = json!(format!("${{version-{}}}", object.suffix));
            }
            json!({"step": "update the status", "send": format!("PUT {}", query.append_to(&path)), "body": body})
        }
        _ => json!({"step": "get the status", "send": format!("GET {path}")}),
    };
    push_step(draft, index, &query, step);
}

fn scale(draft: &mut Draft<'_>, index: usize) {
    let object = draft.objects[index].clone();
    let path = format!("{}/scale", object.path());
    let replicas = draft.random.between(0, 4);
    let query = write_query(draft.random, 50);
    let mut body = json!({"spec": {"replicas": replicas}});
    let step = match draft.random.between(0, 9) {
        0..=2 => json!({"step": "get the scale", "send": format!("GET {path}")}),
        3..=6 => {
            json!({"step": "patch the scale", "send": format!("PATCH {}", query.append_to(&path)), "type": "merge", "body": body})
        }
        _ => {
            body["apiVersion"] = json!("autoscaling/v1");
            body["kind"] = json!("Scale");
            body["metadata"] = json!({"name": object.name, "namespace": object.namespace});
            json!({"step": "update the scale", "send": format!("PUT {}", query.append_to(&path)), "body": body})
        }
    };
    push_step(draft, index, &query, step);
}
