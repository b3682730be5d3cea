//! A stack of a random world, as its operator remembers it: the documents of its newest revision and older texts.

use serde_json::{Value, json};
use sindri_agent::{PRUNE_ANNOTATION, REPLACE_ANNOTATION};

use super::documents::{DocumentKind, choose_kind, make_document};
use super::pools::{NAMESPACES, PART_PREFIX, choose};
use crate::rng::SeededRng;

/// Most documents of an ordinary revision.
const DOCUMENTS_MAX: u64 = 6;
/// Documents of a large revision.
const LARGE: (u64, u64) = (20, 120);

/// A stack of a random world.
#[derive(Clone)]
pub struct RandomStack {
    /// Its name.
    pub name: &'static str,
    documents: Vec<Value>,
    /// Texts of earlier revisions, newest last.
    texts: Vec<String>,
}

impl RandomStack {
    /// Creates a stack without revisions.
    pub fn new(name: &'static str) -> Self {
        Self { name, documents: Vec::new(), texts: Vec::new() }
    }

    /// Returns true if it was submitted before.
    pub fn is_submitted(&self) -> bool {
        !self.texts.is_empty()
    }

    /// Keys of the declared objects, as scenarios write them.
    pub fn object_keys(&self) -> Vec<String> {
        self.documents.iter().map(write_key).collect()
    }

    /// Makes the text of the next revision.
    pub fn next_text(&mut self, rng: &mut SeededRng) -> String {
        let text = match rng.between(0, 19) {
            // The same text once more, an older one, or one that the broker must reject.
            0 | 1 if self.is_submitted() => return choose(rng, &self.texts).clone(),
            2 if self.is_submitted() => return self.break_text(rng),
            3 => self.make_large(rng),
            _ => {
                self.change_documents(rng);
                self.write_text(rng)
            }
        };
        self.texts.push(text.clone());
        text
    }

    /// Makes the text of a revision without an object; none if the stack has no other.
    pub fn drop_object(&mut self, key: &str) -> Option<String> {
        if self.documents.iter().all(|document| write_key(document) == key) {
            return None;
        }
        self.documents.retain(|document| write_key(document) != key);
        let text = join_documents(&self.documents);
        self.texts.push(text.clone());
        Some(text)
    }

    /// Returns the document of an object.
    pub fn find_document(&self, key: &str) -> Option<Value> {
        self.documents.iter().find(|document| write_key(document) == key).cloned()
    }

    /// Makes the text of a revision in which pruning keeps an object.
    pub fn keep_object(&mut self, key: &str) -> String {
        let kept = self.documents.iter_mut().filter(|document| write_key(document) == key);
        kept.for_each(|document| document["metadata"]["annotations"][PRUNE_ANNOTATION] = json!("disabled"));
        let text = join_documents(&self.documents);
        self.texts.push(text.clone());
        text
    }

    /// Returns the text of its newest revision.
    pub fn newest_text(&self) -> Option<String> {
        self.texts.last().cloned()
    }

    /// Makes the text of a revision with one document more.
    pub fn add_document(&mut self, document: Value) -> String {
        let key = write_key(&document);
        self.documents.retain(|other| write_key(other) != key);
        self.documents.push(document);
        let text = join_documents(&self.documents);
        self.texts.push(text.clone());
        text
    }

    fn change_documents(&mut self, rng: &mut SeededRng) {
        if !self.documents.is_empty() {
            for _ in 0..rng.between(0, 2) {
                let dropped = rng.between(0, self.documents.len() as u64 - 1) as usize;
                if self.documents.len() > 1 {
                    self.documents.remove(dropped);
                }
            }
            for index in 0..self.documents.len() {
                if rng.chance(1, 4) {
                    self.documents[index] = change_document(rng, &self.documents[index]);
                }
            }
        }
        let room = DOCUMENTS_MAX.saturating_sub(self.documents.len() as u64);
        let added = rng.between(u64::from(self.documents.is_empty()), room.max(1));
        for _ in 0..added {
            let document = self.make_document(rng);
            if self.documents.iter().all(|other| write_key(other) != write_key(&document)) {
                self.documents.push(document);
            }
        }
    }

    fn make_document(&self, rng: &mut SeededRng) -> Value {
        let kind = choose_kind(rng);
        let namespace = match kind {
            DocumentKind::Namespace => *choose(rng, &NAMESPACES[1..]),
            _ => *choose(rng, &NAMESPACES),
        };
        // Most names belong to the stack; some are shared with others, which makes conflicts.
        let owner = if rng.chance(1, 12) { "shared" } else { self.name };
        let name = format!("{owner}-{}", choose(rng, &["a", "b", "c"]));
        let mut document = make_document(rng, kind, namespace, &name);
        for (annotation, value, one_in) in [(REPLACE_ANNOTATION, "true", 10), (PRUNE_ANNOTATION, "disabled", 30)] {
            if rng.chance(1, one_in) {
                document["metadata"]["annotations"][annotation] = json!(value);
            }
        }
        document
    }

    fn make_large(&mut self, rng: &mut SeededRng) -> String {
        let count = rng.between(LARGE.0, LARGE.1);
        let make = |number| make_document(rng, DocumentKind::ConfigMap, "default", &format!("{}-{number}", self.name));
        self.documents = (0..count).map(make).collect();
        join_documents(&self.documents)
    }

    /// Writes the documents in a random order, sometimes as a `List`.
    fn write_text(&self, rng: &mut SeededRng) -> String {
        let mut documents = self.documents.clone();
        rng.shuffle(&mut documents);
        if rng.chance(1, 12) {
            return json!({"apiVersion": "v1", "kind": "List", "items": documents}).to_string();
        }
        join_documents(&documents)
    }

    fn break_text(&self, rng: &mut SeededRng) -> String {
        let whole = join_documents(&self.documents);
        match rng.between(0, 3) {
            0 => format!("{whole}\n---\n{{apiVersion: v1, kind: ConfigMap"),
            1 => format!("{whole}\n---\n{}", self.documents[0]),
            2 => r#"{"apiVersion":"v1","kind":"List","item":[]}"#.to_owned(),
            _ => String::new(),
        }
    }
}

fn change_document(rng: &mut SeededRng, document: &Value) -> Value {
    let mut changed = document.clone();
    let number = rng.between(10, 99);
    match document["kind"].as_str().unwrap_or_default() {
        "ConfigMap" => changed["data"] = json!({"n": number.to_string(), format!("{PART_PREFIX}{}", number % 3): ""}),
        "Secret" => changed["stringData"]["n"] = json!(format!("{}{number}", super::pools::SECRET_CANARY)),
        "Widget" => changed["spec"] = json!({"size": number}),
        "Deployment" | "StatefulSet" => changed["spec"]["replicas"] = json!(number % 3),
        "Job" => {
            changed["spec"]["template"]["spec"]["containers"][0]["image"] = json!(format!("example.com/app:{number}"))
        }
        _ => changed["metadata"]["labels"]["example.com/n"] = json!(number.to_string()),
    }
    changed
}

fn join_documents(documents: &[Value]) -> String {
    documents.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n")
}

/// Writes the key of a document as scenarios do, such as `apps/Deployment shop/web`.
fn write_key(document: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&document["kind"]), text(&document["metadata"]["name"]));
    let version = text(&document["apiVersion"]);
    let group = version.split_once('/').map_or(String::new(), |(group, _)| format!("{group}/"));
    let is_cluster_scoped =
        matches!(kind.as_str(), "Namespace" | "CustomResourceDefinition" | "ClusterRole" | "StorageClass");
    if is_cluster_scoped {
        return format!("{group}{kind} {name}");
    }
    let namespace = document["metadata"]["namespace"].as_str().unwrap_or("default");
    format!("{group}{kind} {namespace}/{name}")
}
