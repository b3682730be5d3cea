//! Creates the data of a benchmark over the broker's own API.

use std::borrow::Cow;
use std::path::Path;

use serde_json::{Value, json};

use super::http_load::{LoadGenerator, LoadResponse, expect_status, post, put};
use super::server::{Bench, Server};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
/// Requests in flight while data is created.
const CONNECTIONS: usize = 32;
/// Requests between two checks for a signal.
const BATCH: usize = 2000;
/// One report of this many is about a failure.
const FAILED_ONE_IN: usize = 50;
/// Size of every bundle.
pub const BUNDLE_BYTES: usize = 2048;

/// An agent of the broker.
#[derive(Clone, Debug)]
pub struct RegisteredAgent {
    /// Id.
    pub id: String,
    /// Access key.
    pub key: String,
}

/// Client that creates data as the broker's administrator.
pub struct BrokerData<'a> {
    bench: &'a Bench,
    load: LoadGenerator,
    key: String,
}

impl<'a> BrokerData<'a> {
    /// Connects to a broker.
    pub fn connect(bench: &'a Bench, server: &Server) -> Result<Self, String> {
        Ok(Self { bench, load: LoadGenerator::connect(server.address, CONNECTIONS)?, key: server.key.clone() })
    }

    /// Sends POST requests concurrently. Returns the bodies of the responses, each a 201, in the order of the requests.
    pub fn post_all(&mut self, requests: &[(String, String)], content_type: &str) -> Result<Vec<Value>, String> {
        let mut responses = Vec::with_capacity(requests.len());
        for batch in requests.chunks(BATCH) {
            self.bench.check_interrupt()?;
            responses.extend(self.post_batch(batch, content_type)?);
        }
        Ok(responses)
    }

    fn post_batch(&mut self, requests: &[(String, String)], content_type: &str) -> Result<Vec<Value>, String> {
        let (mut responses, key) = (vec![Value::Null; requests.len()], self.key.clone());
        let mut rest = requests.iter().enumerate();
        let sent = std::cell::RefCell::new([0; CONNECTIONS]);
        let next = |connection: usize| {
            let (number, (path, body)) = rest.next()?;
            sent.borrow_mut()[connection] = number;
            Some(Cow::Owned(post(path, &key, content_type, body)))
        };
        self.load.run(next, |connection, response| {
            let number = sent.borrow()[connection];
            let body =
                expect_status(&response, 201).map_err(|error| format!("POST {}: {error}", requests[number].0))?.body;
            responses[number] = serde_json::from_slice(body).map_err(|error| error.to_string())?;
            Ok(())
        })?;
        Ok(responses)
    }

    /// Creates a generator and returns its id.
    pub fn create_generator(&mut self) -> Result<String, String> {
        self.create_generator_named("bench")
    }

    /// Creates a generator with this name and returns its id.
    pub fn create_generator_named(&mut self, name: &str) -> Result<String, String> {
        let made = self.post_all(&[("/api/v1/generators".to_owned(), json!({"name": name}).to_string())], JSON)?;
        text(&made[0]["generator"]["id"])
    }

    /// Creates agents of the generator.
    pub fn create_agents(
        &mut self,
        generator: &str,
        prefix: &str,
        count: usize,
    ) -> Result<Vec<RegisteredAgent>, String> {
        let body = |number| {
            let name = format!("{prefix}-{number}");
            json!({"name": name, "cluster_name": name, "generator_ids": [generator]}).to_string()
        };
        let requests: Vec<_> = (0..count).map(|number| ("/api/v1/agents".to_owned(), body(number))).collect();
        let made = self.post_all(&requests, JSON)?;
        let agent =
            |made: &Value| Ok(RegisteredAgent { id: text(&made["agent"]["id"])?, key: text(&made["initial_pak"])? });
        made.iter().map(agent).collect()
    }

    /// Creates stacks and returns their ids.
    pub fn create_stacks(&mut self, generator: &str, prefix: &str, count: usize) -> Result<Vec<String>, String> {
        let body = |number| json!({"name": format!("{prefix}-{number}"), "generator_id": generator}).to_string();
        let requests: Vec<_> = (0..count).map(|number| ("/api/v1/stacks".to_owned(), body(number))).collect();
        self.post_all(&requests, JSON)?.iter().map(|made| text(&made["id"])).collect()
    }

    /// Submits one revision of each stack and returns their ids.
    pub fn submit_revisions(&mut self, stacks: &[String]) -> Result<Vec<String>, String> {
        let request = |(number, stack): (usize, &String)| (submission_path(stack), bundle(number as u64));
        let requests: Vec<_> = stacks.iter().enumerate().map(request).collect();
        self.post_all(&requests, YAML)?.iter().map(|made| text(&made["id"])).collect()
    }

    /// Targets each stack at an agent.
    pub fn add_targets(&mut self, agent: &str, stacks: &[String]) -> Result<(), String> {
        let requests: Vec<_> = stacks.iter().map(|stack| target_request(agent, stack)).collect();
        self.post_all(&requests, JSON).map(drop)
    }

    /// Sends requests concurrently. The response to each must have this status.
    fn send_all(&mut self, mut requests: impl Iterator<Item = Vec<u8>>, status: u16) -> Result<(), String> {
        loop {
            self.bench.check_interrupt()?;
            let mut batch = requests.by_ref().take(BATCH).peekable();
            if batch.peek().is_none() {
                return Ok(());
            }
            let check = |_, response: LoadResponse<'_>| expect_status(&response, status).map(drop);
            self.load.run(|_| batch.next().map(Cow::Owned), check)?;
        }
    }

    /// Activates agents.
    pub fn activate(&mut self, agents: &[RegisteredAgent]) -> Result<(), String> {
        let (key, body) = (self.key.clone(), json!({"status": "ACTIVE"}).to_string());
        self.send_all(agents.iter().map(|agent| put(&format!("/api/v1/agents/{}", agent.id), &key, JSON, &body)), 200)
    }

    /// Sends a heartbeat of each agent.
    pub fn send_heartbeats(&mut self, agents: &[RegisteredAgent]) -> Result<(), String> {
        let path = |agent: &RegisteredAgent| format!("/api/v1/agents/{}/heartbeat", agent.id);
        self.send_all(agents.iter().map(|agent| post(&path(agent), &agent.key, JSON, "{}")), 204)
    }

    /// Adds a label to each agent.
    pub fn label_agents(&mut self, agents: &[RegisteredAgent], label: &str) -> Result<(), String> {
        let body = |id: &str| json!({"agent_id": id, "label": label}).to_string();
        let request = |agent: &RegisteredAgent| (format!("/api/v1/agents/{}/labels", agent.id), body(&agent.id));
        self.post_all(&agents.iter().map(request).collect::<Vec<_>>(), JSON).map(drop)
    }

    /// Adds a label to each stack, which assigns it to the agents with this label.
    pub fn label_stacks(&mut self, stacks: &[String], label: &str) -> Result<(), String> {
        let body = json!(label).to_string();
        let requests = stacks.iter().map(|stack| (format!("/api/v1/stacks/{stack}/labels"), body.clone()));
        self.post_all(&requests.collect::<Vec<_>>(), JSON).map(drop)
    }

    /// Reports conditions of each stack on each agent; most are ready, and some have failed.
    pub fn report_conditions(
        &mut self,
        agents: &[RegisteredAgent],
        stacks: &[String],
        revisions: &[String],
    ) -> Result<(), String> {
        let request = |number: usize| {
            let (agent, stack) = (&agents[number % agents.len()], number / agents.len());
            let path = format!("/api/v1/agents/{}/stacks/{}/status", agent.id, stacks[stack]);
            put(&path, &agent.key, JSON, &report(&revisions[stack], number.is_multiple_of(FAILED_ONE_IN)))
        };
        self.send_all((0..agents.len() * stacks.len()).map(request), 204)
    }

    /// Reports events of an agent about these revisions.
    pub fn report_events(&mut self, agent: &str, revisions: &[String], count: usize) -> Result<(), String> {
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

/// Report about a revision, as an agent sends it.
fn report(revision: &str, has_failed: bool) -> String {
    let condition = |kind: &str, is_true: bool, reason: &str, message: &str| {
        let status = if is_true { "True" } else { "False" };
        json!({"type": kind, "status": status, "reason": reason, "message": message})
    };
    let conditions = if has_failed {
        let message = "Deployment shop/web: admission webhook \"policy.example\" denied the request: no limits are set";
        [
            condition("Accepted", true, "Valid", ""),
            condition("Applied", false, "Failed", message),
            condition("Ready", false, "NotApplied", ""),
        ]
    } else {
        [
            condition("Accepted", true, "Valid", ""),
            condition("Applied", true, "Applied", ""),
            condition("Ready", true, "Ready", ""),
        ]
    };
    json!({"deployment_object_id": revision, "conditions": conditions}).to_string()
}

/// Path and body of the request that targets a stack at an agent.
pub fn target_request(agent: &str, stack: &str) -> (String, String) {
    (format!("/api/v1/agents/{agent}/targets"), json!({"agent_id": agent, "stack_id": stack}).to_string())
}

/// Request that submits a bundle.
pub fn submission(stack: &str, key: &str, number: u64) -> Vec<u8> {
    post(&submission_path(stack), key, YAML, &bundle(number))
}

fn submission_path(stack: &str) -> String {
    format!("/api/v1/stacks/{stack}/deployment-objects")
}

/// Bundle of one object; each number has another object.
pub fn bundle(number: u64) -> String {
    let head = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: part-{number}\n  namespace: bench\ndata:\n  text: \"\"\n"
    );
    let padding = "x".repeat(BUNDLE_BYTES.saturating_sub(head.len()));
    head.replace("\"\"", &format!("\"{padding}\""))
}

/// Copies the files of a broker that has ended.
pub fn copy_directory(from: &Path, to: &Path) -> Result<(), String> {
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
    value.as_str().map(str::to_owned).ok_or_else(|| "a response lacks an id or a key".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles_have_the_same_size_and_differ() {
        assert_eq!([bundle(0).len(), bundle(123_456).len()], [BUNDLE_BYTES; 2]);
        assert_ne!(bundle(1), bundle(2));
    }
}
