//! Data for what is measured, made over the broker's own API.

use std::borrow::Cow;
use std::path::Path;

use serde_json::{Value, json};

use super::load::{Load, expect, post};
use super::server::{Bench, Server};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
/// How many requests are under way while data is made.
const CONNECTIONS: usize = 32;
/// After so many requests it is seen whether the program should end.
const BATCH: usize = 2000;
/// The size of every bundle.
pub const BUNDLE_BYTES: usize = 2048;

/// An agent and its key.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its id.
    pub id: String,
    /// Its key.
    pub key: String,
}

/// A broker that is filled as its administrator.
pub struct Filling<'a> {
    bench: &'a Bench,
    load: Load,
    key: String,
}

impl<'a> Filling<'a> {
    /// Connects to a broker.
    pub fn of(bench: &'a Bench, server: &Server) -> Result<Self, String> {
        Ok(Self { bench, load: Load::connect(server.address, CONNECTIONS)?, key: server.key.clone() })
    }

    /// Sends requests, many at once; the answers, each a 201, in their order.
    pub fn post_all(&mut self, requests: &[(String, String)], content_type: &str) -> Result<Vec<Value>, String> {
        let mut answers = Vec::with_capacity(requests.len());
        for batch in requests.chunks(BATCH) {
            self.bench.go_on()?;
            answers.extend(self.post_batch(batch, content_type)?);
        }
        Ok(answers)
    }

    fn post_batch(&mut self, requests: &[(String, String)], content_type: &str) -> Result<Vec<Value>, String> {
        let (mut answers, key) = (vec![Value::Null; requests.len()], self.key.clone());
        let mut rest = requests.iter().enumerate();
        let asked = std::cell::RefCell::new([0; CONNECTIONS]);
        let next = |connection: usize| {
            let (number, (path, body)) = rest.next()?;
            asked.borrow_mut()[connection] = number;
            Some(Cow::Owned(post(path, &key, content_type, body)))
        };
        self.load.drive(next, |connection, answer| {
            let number = asked.borrow()[connection];
            let body = expect(&answer, 201).map_err(|error| format!("POST {}: {error}", requests[number].0))?.body;
            answers[number] = serde_json::from_slice(body).map_err(|error| error.to_string())?;
            Ok(())
        })?;
        Ok(answers)
    }

    /// A generator; its id.
    pub fn generator(&mut self) -> Result<String, String> {
        let made = self.post_all(&[("/api/v1/generators".to_owned(), json!({"name": "bench"}).to_string())], JSON)?;
        text(&made[0]["generator"]["id"])
    }

    /// So many agents that are registered with the generator.
    pub fn agents(&mut self, generator: &str, prefix: &str, count: usize) -> Result<Vec<Agent>, String> {
        let body = |number| {
            let name = format!("{prefix}-{number}");
            json!({"name": name, "cluster_name": name, "generator_ids": [generator]}).to_string()
        };
        let requests: Vec<_> = (0..count).map(|number| ("/api/v1/agents".to_owned(), body(number))).collect();
        let made = self.post_all(&requests, JSON)?;
        let agent = |made: &Value| Ok(Agent { id: text(&made["agent"]["id"])?, key: text(&made["initial_pak"])? });
        made.iter().map(agent).collect()
    }

    /// So many stacks; their ids.
    pub fn stacks(&mut self, generator: &str, prefix: &str, count: usize) -> Result<Vec<String>, String> {
        let body = |number| json!({"name": format!("{prefix}-{number}"), "generator_id": generator}).to_string();
        let requests: Vec<_> = (0..count).map(|number| ("/api/v1/stacks".to_owned(), body(number))).collect();
        self.post_all(&requests, JSON)?.iter().map(|made| text(&made["id"])).collect()
    }

    /// One revision of each stack; their ids.
    pub fn revisions(&mut self, stacks: &[String]) -> Result<Vec<String>, String> {
        let request = |(number, stack): (usize, &String)| (submission_path(stack), bundle(number as u64));
        let requests: Vec<_> = stacks.iter().enumerate().map(request).collect();
        self.post_all(&requests, YAML)?.iter().map(|made| text(&made["id"])).collect()
    }

    /// Targets each stack at an agent.
    pub fn target(&mut self, agent: &str, stacks: &[String]) -> Result<(), String> {
        let requests: Vec<_> = stacks.iter().map(|stack| target_request(agent, stack)).collect();
        self.post_all(&requests, JSON).map(drop)
    }

    /// So many events of an agent about these revisions.
    pub fn events(&mut self, agent: &str, revisions: &[String], count: usize) -> Result<(), String> {
        let body = |number: usize| {
            let revision = &revisions[number % revisions.len()];
            let status = if number.is_multiple_of(2) { "FAILURE" } else { "SUCCESS" };
            json!({
                "agent_id": agent, "deployment_object_id": revision, "event_type": "DEPLOY", "status": status,
                "message": format!("event {number}"),
            })
            .to_string()
        };
        let path = format!("/api/v1/agents/{agent}/events");
        let requests: Vec<_> = (0..count).map(|number| (path.clone(), body(number))).collect();
        self.post_all(&requests, JSON).map(drop)
    }
}

/// Targets a stack at an agent: path and body.
pub fn target_request(agent: &str, stack: &str) -> (String, String) {
    (format!("/api/v1/agents/{agent}/targets"), json!({"agent_id": agent, "stack_id": stack}).to_string())
}

/// A whole submission of a bundle.
pub fn submission(stack: &str, key: &str, number: u64) -> Vec<u8> {
    post(&submission_path(stack), key, YAML, &bundle(number))
}

fn submission_path(stack: &str) -> String {
    format!("/api/v1/stacks/{stack}/deployment-objects")
}

/// A bundle of one object that no other number has.
pub fn bundle(number: u64) -> String {
    let head = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: part-{number}\n  namespace: bench\ndata:\n  text: \"\"\n"
    );
    let filling = "x".repeat(BUNDLE_BYTES.saturating_sub(head.len()));
    head.replace("\"\"", &format!("\"{filling}\""))
}

/// Copies the files of a broker that has ended.
pub fn copy_place(from: &Path, to: &Path) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("{}: {error}", from.display());
    for entry in std::fs::read_dir(from).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if let Some(name) = path.file_name() {
            std::fs::copy(&path, to.join(name)).map_err(fail)?;
        }
    }
    Ok(())
}

fn text(value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| "an answer has no id or key where it should".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles_have_their_size_and_differ() {
        assert_eq!([bundle(0).len(), bundle(123_456).len()], [BUNDLE_BYTES; 2]);
        assert_ne!(bundle(1), bundle(2));
    }
}
