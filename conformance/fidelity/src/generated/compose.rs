//! Generates the steps of a sequence: a few objects of a few kinds, which several field managers write repeatedly.
//!
//! The generator tracks which objects should exist, so that most requests find one; the responses of the servers are ignored here.

use serde_json::{Value, json};

use super::draft::Draft;
use super::kinds::{self, ResourceKind};
use super::objects::{NAMESPACES, SEQUENCE_LABEL, SequenceObject, whole_object};
use super::random::RandomSource;
use super::{invalid_requests, requests};

/// A watch that is open for the whole sequence.
struct Stream {
    name: String,
    kind: &'static ResourceKind,
    namespace: &'static str,
}

/// A draft with its open watches.
struct Composer<'a> {
    draft: Draft<'a>,
    streams: Vec<Stream>,
}

/// Generates the steps, including those that open watches and read them at the end.
#[must_use]
pub fn compose(random: &mut RandomSource, requests: usize) -> Vec<Value> {
    let objects = choose_objects(random);
    let draft = Draft { random, objects, steps: Vec::new() };
    let mut composer = Composer { draft, streams: Vec::new() };
    composer.open();
    // Each stream needs two more steps: an object that marks its end, and the read.
    let end = requests.saturating_sub(composer.streams.len() * 2);
    while composer.draft.steps.len() < end {
        composer.next();
    }
    composer.close();
    composer.draft.steps
}

fn choose_objects(random: &mut RandomSource) -> Vec<SequenceObject> {
    let all: Vec<(u32, &'static ResourceKind)> = kinds::all().into_iter().map(|kind| (kind.weight, kind)).collect();
    let chosen: Vec<&'static ResourceKind> = (0..random.between(1, 3)).map(|_| random.weighted(&all)).collect();
    let two_namespaces = random.percent(15);
    let mut objects: Vec<SequenceObject> = Vec::new();
    for _ in 0..random.between(2, 4) {
        let kind = *random.one(&chosen);
        let namespace = NAMESPACES[usize::from(two_namespaces && random.percent(40))];
        let letter = *random.one(&["a", "b"]);
        let name = if kind.namespaced { letter.to_owned() } else { format!("${{namespace}}-{}-{letter}", kind.plural) };
        let suffix = format!("{}{}", objects.len(), letter);
        let object = SequenceObject { kind, namespace, name, suffix, exists: false, was_created: false };
        if !objects.iter().any(|other| other.path() == object.path()) {
            objects.push(object);
        }
    }
    objects
}

impl Composer<'_> {
    /// Creates the second namespace, if one is used, and opens the watches.
    fn open(&mut self) {
        if self.draft.objects.iter().any(|object| object.namespace == NAMESPACES[1]) {
            let metadata = json!({"name": NAMESPACES[1], "labels": {SEQUENCE_LABEL: NAMESPACES[0]}});
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
            self.draft
                .steps
                .push(json!({"step": "another namespace", "send": "POST /api/v1/namespaces", "body": body}));
        }
        for index in 0..self.draft.random.weighted(&[(30, 0), (60, 1), (10, 2)]) {
            let object = self.draft.random.one(&self.draft.objects).clone();
            let name = format!("w{index}");
            let cluster = !object.kind.namespaced;
            let labels = if cluster {
                Some(concat!("of%3D", "${namespace}"))
            } else {
                self.draft.random.percent(30).then_some("app%3Da")
            };
            self.watch(&name, &object, labels);
            self.streams.push(Stream { name, kind: object.kind, namespace: object.namespace });
        }
    }

    fn watch(&mut self, name: &str, object: &SequenceObject, labels: Option<&str>) {
        let path = object.collection();
        let selector = labels.map(|labels| format!("&labelSelector={labels}")).unwrap_or_default();
        let from_list = self.draft.random.percent(60);
        if from_list {
            let keep = json!({format!("from-{name}"): "/metadata/resourceVersion"});
            let query = selector.trim_start_matches('&');
            let send = if query.is_empty() { format!("GET {path}") } else { format!("GET {path}?{query}") };
            self.draft.steps.push(json!({"step": "list before the watch", "send": send, "keep": keep}));
        }
        let from = if from_list { format!("&resourceVersion=${{from-{name}}}") } else { String::new() };
        let query = format!("watch=true{from}{selector}");
        self.draft.steps.push(json!({"step": "watch", "watch": format!("{name} {path}?{query}")}));
    }

    /// For each stream, creates an object that marks its end, and reads the stream up to it.
    fn close(&mut self) {
        for stream in std::mem::take(&mut self.streams) {
            let end = format!("end-{}", stream.name);
            let object = SequenceObject {
                kind: stream.kind,
                namespace: stream.namespace,
                name: if stream.kind.namespaced { end.clone() } else { format!("${{namespace}}-{end}") },
                suffix: end.clone(),
                exists: false,
                was_created: false,
            };
            let mut body = whole_object(self.draft.random, &object);
            body["metadata"]["labels"] = json!({"app": "a", SEQUENCE_LABEL: NAMESPACES[0]});
            let keep = json!({end.clone(): "/metadata/name"});
            let send = format!("POST {}", object.collection());
            self.draft.steps.push(json!({"step": "the end of a watch", "send": send, "body": body, "keep": keep}));
            let through = format!("${{{end}}}");
            self.draft.steps.push(json!({"step": "what was watched", "read": stream.name, "through": through}));
        }
    }

    fn next(&mut self) {
        if self.draft.random.percent(5) {
            let object = self.draft.random.one(&self.draft.objects).clone();
            let step = invalid_requests::generate(self.draft.random, &object);
            self.draft.steps.push(step);
            return;
        }
        let index = self.draft.random.between(0, self.draft.objects.len() - 1);
        let object = self.draft.objects[index].clone();
        let action: fn(&mut Draft<'_>, usize) = if object.exists {
            self.draft.random.weighted::<fn(&mut Draft<'_>, usize)>(&[
                (24, requests::apply),
                (10, requests::update),
                (9, requests::merge),
                (7, requests::json),
                (8, requests::strategic),
                (5, requests::get),
                (7, requests::list),
                (9, requests::delete),
                (2, requests::delete_collection),
                (9, requests::subresource),
                (3, requests::create),
            ])
        } else {
            self.draft.random.weighted::<fn(&mut Draft<'_>, usize)>(&[
                (45, requests::create),
                (45, requests::apply),
                (3, requests::update),
                (2, requests::merge),
                (2, requests::get),
                (2, requests::list),
                (2, requests::delete),
                (1, requests::subresource),
            ])
        };
        action(&mut self.draft, index);
    }
}
