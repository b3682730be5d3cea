//! What happens in a sequence: a few objects of a few kinds, which several managers write again and again.
//!
//! It is remembered which objects should be there, so that most requests find something; what the servers really say
//! is nobody's concern here.

use serde_json::{Value, json};

use super::bad;
use super::dice::Dice;
use super::kinds::{self, Kind};
use super::requests;

/// The namespace that every sequence has, and the one that some have besides.
pub(super) const NAMESPACES: [&str; 2] = ["${namespace}", "${namespace}-b"];
/// Who writes.
pub(super) const MANAGERS: [&str; 3] = ["first", "second", "third"];
/// The label by which the objects of one sequence are told from those of others.
pub(super) const MARK: &str = "of";

/// One object that the sequence is about.
#[derive(Clone, Debug)]
pub(super) struct Thing {
    pub kind: &'static Kind,
    pub namespace: &'static str,
    /// Its name; that of a thing in no namespace holds the sequence's.
    pub name: String,
    /// How words about it end.
    pub word: String,
    /// Whether it should be there.
    pub there: bool,
    /// Whether it was ever made, so that words about it have a meaning.
    pub known: bool,
}

impl Thing {
    pub fn path(&self) -> String {
        format!("{}/{}", self.kind.collection(self.namespace), self.name)
    }

    pub fn collection(&self) -> String {
        self.kind.collection(self.namespace)
    }
}

/// A watch that is open throughout.
struct Stream {
    name: String,
    kind: &'static Kind,
    namespace: &'static str,
    labels: Option<&'static str>,
}

/// What is being composed.
pub(super) struct Composer<'a> {
    pub dice: &'a mut Dice,
    pub things: Vec<Thing>,
    pub steps: Vec<Value>,
    streams: Vec<Stream>,
}

/// So many steps. Those that open watches, and read them at the end, are among them.
#[must_use]
pub fn compose(dice: &mut Dice, requests: usize) -> Vec<Value> {
    let things = cast(dice);
    let mut composer = Composer { dice, things, steps: Vec::new(), streams: Vec::new() };
    composer.open();
    // Each stream takes an object that marks its end, and being read.
    let end = requests.saturating_sub(composer.streams.len() * 2);
    while composer.steps.len() < end {
        composer.next();
    }
    composer.close();
    composer.steps
}

fn cast(dice: &mut Dice) -> Vec<Thing> {
    let all: Vec<(u32, &'static Kind)> = kinds::all().into_iter().map(|kind| (kind.weight, kind)).collect();
    let chosen: Vec<&'static Kind> = (0..dice.between(1, 3)).map(|_| dice.weighed(&all)).collect();
    let two_namespaces = dice.percent(15);
    let mut things: Vec<Thing> = Vec::new();
    for _ in 0..dice.between(2, 4) {
        let kind = *dice.one(&chosen);
        let namespace = NAMESPACES[usize::from(two_namespaces && dice.percent(40))];
        let letter = *dice.one(&["a", "b"]);
        let name = if kind.namespaced { letter.to_owned() } else { format!("${{namespace}}-{}-{letter}", kind.plural) };
        let word = format!("{}{}", things.len(), letter);
        let thing = Thing { kind, namespace, name, word, there: false, known: false };
        if !things.iter().any(|other| other.path() == thing.path()) {
            things.push(thing);
        }
    }
    things
}

impl Composer<'_> {
    /// The second namespace where one is used, and the watches.
    fn open(&mut self) {
        if self.things.iter().any(|thing| thing.namespace == NAMESPACES[1]) {
            let metadata = json!({"name": NAMESPACES[1], "labels": {MARK: NAMESPACES[0]}});
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
            self.steps.push(json!({"step": "another namespace", "send": "POST /api/v1/namespaces", "body": body}));
        }
        for index in 0..self.dice.weighed(&[(30, 0), (60, 1), (10, 2)]) {
            let thing = self.dice.one(&self.things).clone();
            let name = format!("w{index}");
            let cluster = !thing.kind.namespaced;
            let labels = if cluster {
                Some(concat!("of%3D", "${namespace}"))
            } else {
                self.dice.percent(30).then_some("app%3Da")
            };
            self.watch(&name, &thing, labels);
            self.streams.push(Stream { name, kind: thing.kind, namespace: thing.namespace, labels });
        }
    }

    fn watch(&mut self, name: &str, thing: &Thing, labels: Option<&str>) {
        let path = thing.collection();
        let selector = labels.map(|labels| format!("&labelSelector={labels}")).unwrap_or_default();
        let from_list = self.dice.percent(60);
        if from_list {
            let keep = json!({format!("from-{name}"): "/metadata/resourceVersion"});
            let query = selector.trim_start_matches('&');
            let send = if query.is_empty() { format!("GET {path}") } else { format!("GET {path}?{query}") };
            self.steps.push(json!({"step": "list before the watch", "send": send, "keep": keep}));
        }
        let from = if from_list { format!("&resourceVersion=${{from-{name}}}") } else { String::new() };
        let query = format!("watch=true{from}{selector}");
        self.steps.push(json!({"step": "watch", "watch": format!("{name} {path}?{query}")}));
    }

    /// An object that every reader of a stream waits for, and then the stream.
    fn close(&mut self) {
        for stream in std::mem::take(&mut self.streams) {
            let end = format!("end-{}", stream.name);
            let thing = Thing {
                kind: stream.kind,
                namespace: stream.namespace,
                name: if stream.kind.namespaced { end.clone() } else { format!("${{namespace}}-{end}") },
                word: end.clone(),
                there: false,
                known: false,
            };
            let mut body = requests::whole(self.dice, &thing);
            body["metadata"]["labels"] = json!({"app": "a", MARK: NAMESPACES[0]});
            let _shown = stream.labels;
            let keep = json!({end.clone(): "/metadata/name"});
            let send = format!("POST {}", thing.collection());
            self.steps.push(json!({"step": "the end of a watch", "send": send, "body": body, "keep": keep}));
            let through = format!("${{{end}}}");
            self.steps.push(json!({"step": "what was watched", "read": stream.name, "through": through}));
        }
    }

    fn next(&mut self) {
        if self.dice.percent(5) {
            let thing = self.dice.one(&self.things).clone();
            let step = bad::request(self.dice, &thing);
            self.steps.push(step);
            return;
        }
        let index = self.dice.between(0, self.things.len() - 1);
        let thing = self.things[index].clone();
        let action: fn(&mut Self, usize) = if thing.there {
            self.dice.weighed::<fn(&mut Self, usize)>(&[
                (24, requests::apply),
                (10, requests::update),
                (9, requests::merge),
                (7, requests::json),
                (8, requests::strategic),
                (5, requests::get),
                (7, requests::list),
                (9, requests::delete),
                (2, requests::delete_collection),
                (9, requests::part),
                (3, requests::create),
            ])
        } else {
            self.dice.weighed::<fn(&mut Self, usize)>(&[
                (45, requests::create),
                (45, requests::apply),
                (3, requests::update),
                (2, requests::merge),
                (2, requests::get),
                (2, requests::list),
                (2, requests::delete),
                (1, requests::part),
            ])
        };
        action(self, index);
    }
}
