//! Random requests: the broker responds to each with a valid status and error, and never fails.
//!
//! The requests are derived from a seed, the routes of the OpenAPI document, and bodies that are nearly valid, so that most
//! of them reach a handler.

use axum::body::Body;
use http::{HeaderName, HeaderValue, Method, Request};
use serde_json::{Value, json};
use sindri_broker::openapi_document;

use crate::support::{Api, BUNDLE, text, webhooks};

const SEEDS: u64 = 8;
const REQUESTS_PER_SEED: usize = 3_000;
/// Limit on the size of a response.
const RESPONSE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Pseudo-random numbers of a seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Texts that often cause bugs.
const NASTY: [&str; 22] = [
    "",
    "a",
    " ",
    "\0",
    "%00",
    "%",
    "%2F",
    "..",
    "../..",
    "ü",
    "\u{202e}",
    "\u{feff}",
    "-1",
    "0",
    "9223372036854775807",
    "99999999999999999999",
    "null",
    "true",
    "' OR 1=1 --",
    "*",
    "2026-01-01T00:00:00Z",
    "-009999-01-01T00:00:00Z",
];

struct World {
    api: Api,
    keys: Vec<String>,
    ids: Vec<(&'static str, String)>,
    routes: Vec<(Method, String)>,
}

impl World {
    async fn new() -> Self {
        let api = Api::without_waiting(Some(webhooks())).await;
        let (shop, other) = (api.create_generator("shop").await, api.create_generator("other").await);
        let (east, west) = (api.create_agent("east", &[&shop.0]).await, api.create_agent("west", &[]).await);
        let stack = api.create_stack("web", &shop.0).await;
        api.target(&east.0, &stack).await;
        let revision = text(&api.submit(&stack, false).await["id"]);
        let webhook = api.create_webhook("hook", &["edge"]).await;
        let unknown = "00000000-0000-4000-8000-000000000000".to_owned();
        let mut keys = vec![api.admin.clone(); 6];
        keys.extend([east.1, west.1, shop.1, other.1]);
        let ids = vec![
            ("agents", east.0),
            ("agents", west.0),
            ("generators", shop.0),
            ("generators", other.0),
            ("stacks", stack),
            ("deployment-objects", revision),
            ("webhooks", webhook),
            ("unknown", unknown),
        ];
        Self { api, keys, ids, routes: routes() }
    }

    fn word(&self, dice: &mut Dice) -> String {
        match dice.below(10) {
            0 => (*dice.pick(&NASTY)).to_owned(),
            1 => "x".repeat(dice.below(5_000)),
            2..8 => format!("n{}", dice.below(200)),
            _ => dice.pick(&self.ids).1.clone(),
        }
    }

    fn value(&self, dice: &mut Dice, depth: usize) -> Value {
        match dice.below(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => json!(dice.one_in(2)),
            2 => json!(dice.next() as i64),
            3 => json!(*dice.pick(&["ACTIVE", "SUCCESS", "healthy", "*", "stack.*", "https://a.example/", BUNDLE])),
            4 => json!(self.word(dice)),
            5 => (0..dice.below(4)).map(|_| self.value(dice, depth - 1)).collect(),
            _ => self.object(dice, depth - 1),
        }
    }

    fn object(&self, dice: &mut Dice, depth: usize) -> Value {
        let mut object = json!({});
        for _ in 0..dice.below(6) {
            let field = *dice.pick(&FIELDS);
            object[field] = self.value(dice, depth);
        }
        object
    }

    /// Returns a body that is valid for the route, or nearly.
    fn body(&self, dice: &mut Dice, template: &str) -> Vec<u8> {
        let kind = BODIES.iter().find(|(end, _)| template.ends_with(end)).map(|(_, kind)| *kind);
        let kind = kind.filter(|_| !dice.one_in(6)).unwrap_or_else(|| dice.below(18));
        let (agent, stack) = (self.id(dice, "agents"), self.id(dice, "stacks"));
        let (generator, revision) = (self.id(dice, "generators"), self.id(dice, "deployment-objects"));
        let mut body = match kind {
            0 => json!({"name": self.word(dice), "cluster_name": self.word(dice)}),
            1 => json!({"name": self.word(dice), "generator_id": generator}),
            2 => json!({"name": self.word(dice), "description": self.word(dice)}),
            3 => json!({"yaml_content": self.yaml(dice), "is_deletion_marker": dice.one_in(3)}),
            4 => json!({"agent_id": agent, "stack_id": stack}),
            5 => json!({"agent_id": agent, "label": self.word(dice)}),
            6 => json!({"agent_id": agent, "key": self.word(dice), "value": self.word(dice)}),
            7 => json!({"stack_id": stack, "key": self.word(dice), "value": self.word(dice)}),
            8 => json!(self.word(dice)),
            9 => json!({
                "agent_id": agent, "deployment_object_id": revision, "event_type": "DEPLOY",
                "status": self.word(dice), "message": self.word(dice),
            }),
            10 => json!({"deployment_objects": [{
                "id": revision, "status": "healthy", "checked_at": "2026-01-01T00:00:00Z", "summary": self.value(dice, 3),
            }]}),
            11 => json!({
                "name": self.word(dice), "url": "https://a.example/", "event_types": ["*"],
                "target_labels": [self.word(dice)], "max_retries": dice.below(25), "filters": {"agent_id": agent},
            }),
            12 => json!({"success": dice.one_in(2), "error": self.word(dice), "status_code": dice.next() as i64}),
            13 => json!({"agent_id": agent}),
            14 => json!({}),
            17 => {
                let digest = dice.pick(&["a", "b", "é"]).repeat(64);
                json!({"deployment_object_id": revision, "digest": digest, "reasons": [self.word(dice)], "plan": ""})
            }
            16 => json!({"deployment_object_id": revision, "conditions": [
                {"type": "Blocked", "status": *dice.pick(&["True", "False", "maybe"]), "message": self.word(dice)},
            ]}),
            _ => self.value(dice, 4),
        };
        if let (true, Some(fields)) = (dice.one_in(4), body.as_object_mut()) {
            fields.insert((*dice.pick(&FIELDS)).to_owned(), self.value(dice, 2));
        }
        let mut bytes = body.to_string().into_bytes();
        mutate(dice, &mut bytes);
        bytes
    }

    /// Returns the id of an object of this kind, usually an existing one.
    fn id(&self, dice: &mut Dice, kind: &str) -> String {
        let right: Vec<_> = self.ids.iter().filter(|(of, _)| *of == kind).collect();
        if right.is_empty() || dice.one_in(8) { dice.pick(&self.ids).1.clone() } else { dice.pick(&right).1.clone() }
    }

    fn yaml(&self, dice: &mut Dice) -> String {
        match dice.below(5) {
            0 => "a: &a [1]\nb: [*a, *a]\n".to_owned(),
            1 => format!("{}{}", "[".repeat(dice.below(200)), "]".repeat(dice.below(200))),
            2 => format!("a: {}", self.word(dice)),
            3 => "---\n".repeat(dice.below(100)),
            _ => BUNDLE.to_owned(),
        }
    }

    fn path(&self, dice: &mut Dice, template: &str) -> String {
        let mut parts: Vec<String> = template.split('/').map(str::to_owned).collect();
        let kind = template.split('/').nth(3).unwrap_or_default();
        for part in &mut parts {
            if part.starts_with('{') {
                *part = match part.as_str() {
                    _ if dice.one_in(8) => self.word(dice),
                    "{id}" => self.id(dice, kind),
                    "{stack_id}" => self.id(dice, "stacks"),
                    _ => "a".to_owned(),
                };
            } else if dice.one_in(60) {
                *part = self.word(dice);
            }
        }
        let path = escaped(&parts.join("/"));
        if !dice.one_in(3) {
            return path;
        }
        let pairs = (0..dice.below(4)).map(|_| format!("{}={}", *dice.pick(&QUERY), escaped(&self.word(dice))));
        format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
    }

    fn request(&self, dice: &mut Dice) -> Request<Body> {
        let (mut method, mut template) = dice.pick(&self.routes).clone();
        // Requests that would invalidate the keys of the test are skipped.
        let is_of_admin = template.ends_with("/admin/rotate-pak");
        if is_of_admin || (deletes_an_actor(&method, &template) && !dice.one_in(40)) {
            (method, template) = (Method::GET, "/api/v1/stacks".to_owned());
        }
        let path = self.path(dice, &template);
        let method = if dice.one_in(40) { dice.pick(&METHODS).clone() } else { method };
        let mut request = Request::new(Body::from(self.body(dice, &template)));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().unwrap_or_default();
        let headers = request.headers_mut();
        if !dice.one_in(30) {
            headers.insert("authorization", dice.pick(&self.keys).parse().unwrap());
        }
        for _ in 0..dice.below(3) {
            let name = HeaderName::from_static(dice.pick::<&str>(&HEADERS));
            if let Ok(value) = HeaderValue::from_bytes(self.word(dice).as_bytes()) {
                headers.insert(name, value);
            }
        }
        if dice.one_in(6) {
            let types = ["application/json", "application/yaml", "text/plain", "application/json; charset=latin1", ";"];
            headers.insert("content-type", dice.pick(&types).parse().unwrap());
        }
        request
    }
}

fn deletes_an_actor(method: &Method, template: &str) -> bool {
    let is_actor = ["/agents/{id}", "/generators/{id}", "/stacks/{id}"].iter().any(|end| template.ends_with(end));
    template.ends_with("/rotate-pak") || (*method == Method::DELETE && is_actor)
}

/// Valid bodies by route.
const BODIES: [(&str, usize); 15] = [
    ("/agents", 0),
    ("/v1/stacks", 1),
    ("/generators", 2),
    ("/deployment-objects", 3),
    ("/targets", 4),
    ("/agents/{id}/labels", 5),
    ("/agents/{id}/annotations", 6),
    ("/stacks/{id}/annotations", 7),
    ("/stacks/{id}/labels", 8),
    ("/events", 9),
    ("/health-status", 10),
    ("/status", 16),
    ("/approval", 17),
    ("/webhooks", 11),
    ("/register", 13),
];
const METHODS: [Method; 7] =
    [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::HEAD, Method::OPTIONS];
const FIELDS: [&str; 18] = [
    "id",
    "name",
    "cluster_name",
    "status",
    "description",
    "generator_id",
    "generator_ids",
    "agent_id",
    "stack_id",
    "label",
    "key",
    "value",
    "yaml_content",
    "is_deletion_marker",
    "event_types",
    "filters",
    "enabled",
    "url",
];
const QUERY: [&str; 14] = [
    "limit",
    "after",
    "offset",
    "pak_id",
    "mode",
    "wait",
    "name",
    "cluster_name",
    "status",
    "from",
    "to",
    "action",
    "deletion_marker",
    "",
];
const HEADERS: [&str; 6] =
    ["idempotency-key", "if-none-match", "accept-encoding", "user-agent", "x-request-id", "accept"];

fn routes() -> Vec<(Method, String)> {
    let document = openapi_document();
    let paths = document["paths"].as_object().unwrap().iter();
    let routes = paths.flat_map(|(path, methods)| {
        methods.as_object().unwrap().keys().map(move |method| (method.to_uppercase().parse().unwrap(), path.clone()))
    });
    routes.collect()
}

/// Escapes characters as a client does, except those that may be escaped already.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/%".contains(&byte);
    let pieces =
        text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") });
    pieces.collect()
}

fn mutate(dice: &mut Dice, bytes: &mut Vec<u8>) {
    match dice.below(30) {
        0 => bytes.truncate(dice.below(bytes.len() + 1)),
        1 if !bytes.is_empty() => {
            let at = dice.below(bytes.len());
            bytes[at] = dice.next() as u8;
        }
        2 => bytes.extend_from_within(..),
        3 => bytes.clear(),
        _ => {}
    }
}

#[tokio::test]
async fn no_request_makes_the_broker_fail() {
    let mut reached = std::collections::BTreeMap::<u16, usize>::new();
    for seed in 0..SEEDS {
        let (world, mut dice) = (World::new().await, Dice(seed));
        for number in 0..REQUESTS_PER_SEED {
            let request = world.request(&mut dice);
            let description = format!("seed {seed}, request {number}: {} {}", request.method(), request.uri());
            let is_head = request.method() == Method::HEAD;
            let response = world.api.send(request).await;
            let status = response.status.as_u16();
            *reached.entry(status).or_default() += 1;
            assert!(status < 500, "{description}: {status} {:?}", response.body);
            assert!(response.body.len() <= RESPONSE_BYTES_MAX, "{description}");
            if status >= 400 && !is_head && response.headers.get("content-encoding").is_none() {
                let problem = response.json();
                let fields: Vec<&String> = problem.as_object().unwrap().keys().collect();
                assert!(
                    fields == ["code", "message"] || fields == ["code", "details", "message"],
                    "{description}: {problem}"
                );
            }
        }
        // The administrator can still read.
        world.api.get(&world.api.admin, "/agents").await.expect_status(200);
    }
    // The test is only meaningful if requests reach the handlers.
    for status in [200, 201, 204, 400, 401, 403, 404, 405, 409, 415] {
        assert!(reached.contains_key(&status), "{status} was never returned: {reached:?}");
    }
    assert!(reached[&201] > 200 && reached[&200] > 1_000, "{reached:?}");
}
