//! One request of each verb. What an answer holds is kept in words, so that later requests can use it.

use serde_json::{Map, Value, json};

use super::compose::{Composer, MANAGERS, MARK, NAMESPACES, Thing};
use super::dice::Dice;
use super::patches;

/// How many of a hundred writes are only tried.
const DRY: u32 = 8;
/// A version that no server of ours has reached, so that it has no place among those that are numbered.
const NO_VERSION: &str = "4000000000";

/// A query of some parts.
struct Query(Vec<String>);

impl Query {
    fn add(&mut self, part: impl Into<String>) {
        self.0.push(part.into());
    }

    fn on(&self, path: &str) -> String {
        if self.0.is_empty() { path.to_owned() } else { format!("{path}?{}", self.0.join("&")) }
    }

    fn is_dry(&self) -> bool {
        self.0.iter().any(|part| part.starts_with("dryRun"))
    }
}

/// A whole object of a thing's kind.
pub(super) fn whole(dice: &mut Dice, thing: &Thing) -> Value {
    let mut object = (thing.kind.content)(dice);
    object["apiVersion"] = json!(thing.kind.api_version);
    object["kind"] = json!(thing.kind.name);
    object["metadata"] = metadata(dice, thing);
    object
}

fn metadata(dice: &mut Dice, thing: &Thing) -> Value {
    let mut metadata = json!({ "name": thing.name });
    if thing.kind.namespaced && dice.percent(30) {
        metadata["namespace"] = json!(thing.namespace);
    }
    let mut labels = Map::new();
    if dice.percent(60) {
        labels.insert("app".to_owned(), json!(dice.one(&["a", "b"])));
    }
    if dice.percent(20) {
        labels.insert("tier".to_owned(), json!(dice.one(&["x", "y", ""])));
    }
    if !thing.kind.namespaced {
        labels.insert(MARK.to_owned(), json!(NAMESPACES[0]));
    }
    if !labels.is_empty() {
        metadata["labels"] = labels.into();
    }
    dice.maybe(25, &mut metadata, "annotations", |dice| json!({"note": dice.one(&["1", "2"])}));
    dice.maybe(10, &mut metadata, "finalizers", |dice| {
        let (one, two) = ("example.com/one", "example.com/two");
        dice.one(&[json!([one]), json!([two]), json!([one, two])]).clone()
    });
    metadata
}

/// Somebody who owns the thing: another thing of the sequence, or nobody who exists.
fn owner(composer: &mut Composer<'_>, not: usize) -> Option<Value> {
    let others: Vec<Thing> = composer
        .things
        .iter()
        .enumerate()
        .filter(|(index, thing)| *index != not && thing.known)
        .map(|(_, thing)| thing.clone())
        .collect();
    if others.is_empty() {
        return None;
    }
    let other = composer.dice.one(&others).clone();
    let uid = format!("${{uid-{}}}", other.word);
    let mut owner =
        json!({"apiVersion": other.kind.api_version, "kind": other.kind.name, "name": other.name, "uid": uid});
    composer.dice.maybe(30, &mut owner, "controller", |dice| json!(dice.percent(70)));
    composer.dice.maybe(30, &mut owner, "blockOwnerDeletion", |dice| json!(dice.percent(70)));
    Some(json!([owner]))
}

fn writing(dice: &mut Dice, manager: u32) -> Query {
    let mut query = Query(Vec::new());
    if dice.percent(manager) {
        query.add(format!("fieldManager={}", dice.one(&MANAGERS)));
    }
    if dice.percent(DRY) {
        query.add("dryRun=All");
    }
    if dice.percent(10) {
        query.add(format!("fieldValidation={}", dice.one(&["Strict", "Warn", "Ignore"])));
    }
    query
}

/// The words about a thing that an answer gives.
fn keep(thing: &Thing) -> Value {
    let (version, uid) = (format!("version-{}", thing.word), format!("uid-{}", thing.word));
    json!({version: "/metadata/resourceVersion", uid: "/metadata/uid"})
}

fn push(composer: &mut Composer<'_>, index: usize, query: &Query, mut step: Value) {
    if !query.is_dry() {
        step["keep"] = keep(&composer.things[index]);
    }
    composer.steps.push(step);
}

fn is_there(composer: &mut Composer<'_>, index: usize, query: &Query) {
    if !query.is_dry() {
        composer.things[index].there = true;
        composer.things[index].known = true;
    }
}

pub(super) fn create(composer: &mut Composer<'_>, index: usize) {
    let thing = composer.things[index].clone();
    let mut body = whole(composer.dice, &thing);
    if composer.dice.percent(10)
        && let Some(owner) = owner(composer, index)
    {
        body["metadata"]["ownerReferences"] = owner;
    }
    let query = writing(composer.dice, 50);
    let send = format!("POST {}", query.on(&thing.collection()));
    // Two generated names would be in any order, so that there is one a sequence.
    let made = composer.steps.iter().any(|step| step["body"]["metadata"].get("generateName").is_some());
    if thing.kind.namespaced && !made && composer.dice.percent(4) {
        body["metadata"]["name"] = Value::Null;
        body["metadata"]["generateName"] = json!("made-");
        composer.steps.push(json!({"step": "create with a generated name", "send": send, "body": body}));
        return;
    }
    push(composer, index, &query, json!({"step": "create", "send": send, "body": body}));
    is_there(composer, index, &query);
}

pub(super) fn apply(composer: &mut Composer<'_>, index: usize) {
    let thing = composer.things[index].clone();
    let mut body = whole(composer.dice, &thing);
    if thing.there && composer.dice.percent(40) {
        patches::thin(composer.dice, &mut body);
    }
    if composer.dice.percent(8)
        && let Some(owner) = owner(composer, index)
    {
        body["metadata"]["ownerReferences"] = owner;
    }
    if thing.known && composer.dice.percent(4) {
        body["metadata"]["resourceVersion"] = json!(format!("${{version-{}}}", thing.word));
    }
    let mut query = writing(composer.dice, 0);
    query.add(format!("fieldManager={}", composer.dice.one(&MANAGERS)));
    if composer.dice.percent(55) {
        query.add("force=true");
    }
    let send = format!("PATCH {}", query.on(&thing.path()));
    push(composer, index, &query, json!({"step": "apply", "send": send, "type": "apply", "body": body}));
    is_there(composer, index, &query);
}

pub(super) fn update(composer: &mut Composer<'_>, index: usize) {
    let thing = composer.things[index].clone();
    let mut body = whole(composer.dice, &thing);
    if thing.known && composer.dice.percent(75) {
        body["metadata"]["resourceVersion"] = json!(format!("${{version-{}}}", thing.word));
    } else if composer.dice.percent(15) {
        body["metadata"]["resourceVersion"] = json!(NO_VERSION);
    }
    if thing.known && composer.dice.percent(20) {
        body["metadata"]["uid"] = json!(format!("${{uid-{}}}", thing.word));
    }
    if composer.dice.percent(5) {
        body["metadata"]["managedFields"] = composer.dice.one(&[json!([]), json!([{}])]).clone();
    }
    let query = writing(composer.dice, 50);
    let send = format!("PUT {}", query.on(&thing.path()));
    push(composer, index, &query, json!({"step": "update", "send": send, "body": body}));
}

pub(super) fn merge(composer: &mut Composer<'_>, index: usize) {
    let thing = composer.things[index].clone();
    let object = whole(composer.dice, &thing);
    let body = patches::merge(composer.dice, object);
    patch(composer, index, "merge", body);
}

pub(super) fn strategic(composer: &mut Composer<'_>, index: usize) {
    let thing = composer.things[index].clone();
    if thing.kind.custom && composer.dice.percent(95) {
        return merge(composer, index);
    }
    let object = whole(composer.dice, &thing);
    let body = patches::strategic(composer.dice, object);
    patch(composer, index, "strategic", body);
}

pub(super) fn json(composer: &mut Composer<'_>, index: usize) {
    let thing = composer.things[index].clone();
    let object = whole(composer.dice, &thing);
    let body = patches::json(composer.dice, &object);
    patch(composer, index, "json-patch", body);
}

fn patch(composer: &mut Composer<'_>, index: usize, kind: &str, body: Value) {
    let thing = composer.things[index].clone();
    let query = writing(composer.dice, 50);
    let send = format!("PATCH {}", query.on(&thing.path()));
    push(composer, index, &query, json!({"step": format!("{kind} patch"), "send": send, "type": kind, "body": body}));
}

pub(super) fn get(composer: &mut Composer<'_>, index: usize) {
    let thing = composer.things[index].clone();
    let mut step = json!({"step": "get", "send": format!("GET {}", thing.path()), "keep": keep(&thing)});
    if thing.kind.name != "Service" && composer.dice.percent(15) {
        step["accept"] =
            json!(composer.dice.one(&["table", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",]));
    }
    composer.steps.push(step);
}

pub(super) fn list(composer: &mut Composer<'_>, index: usize) {
    let thing = composer.things[index].clone();
    let path = thing.collection();
    let mut query = Query(Vec::new());
    let selectors = ["app%3Da", "app+in+%28a%2Cb%29", "%21tier", "app%21%3Da", "tier"];
    match (thing.kind.namespaced, composer.dice.percent(50)) {
        (false, _) => query.add("labelSelector=of%3D${namespace}"),
        (true, true) => query.add(format!("labelSelector={}", composer.dice.one(&selectors))),
        (true, false) => {}
    }
    if composer.dice.percent(25) {
        let fields = ["metadata.name%3Da", "metadata.name%21%3Da", "metadata.namespace%3D${namespace}"];
        query.add(format!("fieldSelector={}", composer.dice.one(&fields)));
    }
    // Whether anything follows in the whole cluster depends on other sequences.
    // Tokens of equal pages are equal only if nobody else writes in between, so that there is one a sequence.
    let paged = composer.steps.iter().any(|step| step["send"].as_str().is_some_and(|line| line.contains("limit=1")));
    if thing.kind.namespaced && !paged && composer.dice.percent(25) {
        let first = query.0.clone();
        query.add("limit=1");
        let send = format!("GET {}", query.on(&path));
        composer.steps.push(json!({"step": "list one", "send": send, "keep": {"continue": "/metadata/continue"}}));
        let mut query = Query(first);
        query.add("limit=1");
        query.add("continue=${continue}");
        let send = format!("GET {}", query.on(&path));
        composer.steps.push(json!({"step": "list on", "send": send, "keep": {"continue": "/metadata/continue"}}));
        return;
    }
    let mut step = json!({"step": "list", "send": format!("GET {}", query.on(&path))});
    // The tables of services show ports that are given at random.
    if thing.kind.name != "Service" && composer.dice.percent(15) {
        step["accept"] =
            json!(composer.dice.one(&["table", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"]));
    }
    composer.steps.push(step);
}

pub(super) fn delete(composer: &mut Composer<'_>, index: usize) {
    let thing = composer.things[index].clone();
    let mut query = Query(Vec::new());
    if composer.dice.percent(DRY) {
        query.add("dryRun=All");
    }
    let mut step = json!({"step": "delete"});
    let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    let policies = ["Background", "Background", "Foreground", "Orphan"];
    if composer.dice.percent(20) {
        query.add(format!("propagationPolicy={}", composer.dice.one(&policies)));
    } else if composer.dice.percent(25) {
        options["propagationPolicy"] = json!(composer.dice.one(&policies));
        step["body"] = options.clone();
    }
    if thing.known && composer.dice.percent(25) {
        let conditions = [
            json!({"uid": format!("${{uid-{}}}", thing.word)}),
            json!({"uid": "0b1f2c3d-0000-4000-8000-00000000000a"}),
            json!({"resourceVersion": format!("${{version-{}}}", thing.word)}),
            json!({"resourceVersion": "1"}),
        ];
        options["preconditions"] = composer.dice.one(&conditions).clone();
        step["body"] = options;
    } else if composer.dice.percent(10) {
        query.add("gracePeriodSeconds=0");
    }
    step["send"] = json!(format!("DELETE {}", query.on(&thing.path())));
    composer.steps.push(step);
    if !query.is_dry() {
        composer.things[index].there = false;
    }
}

pub(super) fn delete_collection(composer: &mut Composer<'_>, index: usize) {
    let thing = composer.things[index].clone();
    let mut query = Query(Vec::new());
    if !thing.kind.namespaced {
        query.add("labelSelector=of%3D${namespace}");
    } else if composer.dice.percent(60) {
        query.add(format!("labelSelector=app%3D{}", composer.dice.one(&["a", "b"])));
    }
    if composer.dice.percent(DRY) {
        query.add("dryRun=All");
    }
    let send = format!("DELETE {}", query.on(&thing.collection()));
    composer.steps.push(json!({"step": "delete the collection", "send": send}));
    composer.things[index].there &= composer.dice.percent(50);
}

/// A subresource, or metadata where there is none.
pub(super) fn part(composer: &mut Composer<'_>, index: usize) {
    let thing = composer.things[index].clone();
    // The status of a service that is not there makes one, half made.
    let makes = thing.kind.name == "Service" && !thing.there;
    if thing.kind.parts.is_empty() || makes {
        return metadata_only(composer, index);
    }
    match *composer.dice.one(thing.kind.parts) {
        "scale" => scale(composer, index),
        _ => status(composer, index),
    }
}

fn metadata_only(composer: &mut Composer<'_>, index: usize) {
    let thing = composer.things[index].clone();
    let bodies = [
        json!({"metadata": {"finalizers": ["example.com/one"]}}),
        json!({"metadata": {"finalizers": []}}),
        json!({"metadata": {"finalizers": null}}),
        json!({"metadata": {"labels": {"app": null}}}),
        json!({"metadata": {"annotations": {"note": "3"}}}),
        json!({"metadata": {"ownerReferences": null}}),
    ];
    let body = composer.dice.one(&bodies).clone();
    let query = writing(composer.dice, 40);
    let send = format!("PATCH {}", query.on(&thing.path()));
    push(composer, index, &query, json!({"step": "patch metadata", "send": send, "type": "merge", "body": body}));
}

fn status(composer: &mut Composer<'_>, index: usize) {
    let thing = composer.things[index].clone();
    let status = (thing.kind.status)(composer.dice);
    let query = writing(composer.dice, 50);
    let path = format!("{}/status", thing.path());
    let step = match composer.dice.between(0, 9) {
        0..=3 => {
            let body = json!({ "status": status });
            json!({"step": "merge patch of the status", "send": format!("PATCH {}", query.on(&path)), "type": "merge", "body": body})
        }
        4..=6 => {
            let mut body = json!({"apiVersion": thing.kind.api_version, "kind": thing.kind.name, "status": status});
            body["metadata"] = json!({ "name": thing.name });
            let mut query = writing(composer.dice, 0);
            query.add(format!("fieldManager={}", composer.dice.one(&MANAGERS)));
            query.add("force=true");
            json!({"step": "apply the status", "send": format!("PATCH {}", query.on(&path)), "type": "apply", "body": body})
        }
        7..=8 => {
            let mut body = whole(composer.dice, &thing);
            body["status"] = status;
            if thing.known {
                body["metadata"]["resourceVersion"] = json!(format!("${{version-{}}}", thing.word));
            }
            json!({"step": "update the status", "send": format!("PUT {}", query.on(&path)), "body": body})
        }
        _ => json!({"step": "get the status", "send": format!("GET {path}")}),
    };
    push(composer, index, &query, step);
}

fn scale(composer: &mut Composer<'_>, index: usize) {
    let thing = composer.things[index].clone();
    let path = format!("{}/scale", thing.path());
    let replicas = composer.dice.between(0, 4);
    let query = writing(composer.dice, 50);
    let mut body = json!({"spec": {"replicas": replicas}});
    let step = match composer.dice.between(0, 9) {
        0..=2 => json!({"step": "get the scale", "send": format!("GET {path}")}),
        3..=6 => {
            json!({"step": "patch the scale", "send": format!("PATCH {}", query.on(&path)), "type": "merge", "body": body})
        }
        _ => {
            body["apiVersion"] = json!("autoscaling/v1");
            body["kind"] = json!("Scale");
            body["metadata"] = json!({"name": thing.name, "namespace": thing.namespace});
            json!({"step": "update the scale", "send": format!("PUT {}", query.on(&path)), "body": body})
        }
    };
    push(composer, index, &query, step);
}
