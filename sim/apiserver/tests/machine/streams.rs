//! Requests for the streams of pods: which are accepted, and the errors of the others.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};
use sindri_apiserver::{Credentials, Request, Response, UpgradeHeaders, WebhookReply};

use crate::harness::Machine;

const PODS: &str = "/api/v1/namespaces/default/pods";
const V5: &str = "v5.channel.k8s.io";
const V4: &str = "v4.channel.k8s.io";

fn pod(name: &str, containers: &[&str]) -> Value {
    let containers: Vec<Value> =
        containers.iter().map(|name| json!({"name": name, "image": format!("{name}:1")})).collect();
    json!({"metadata": {"name": name}, "spec": {"containers": containers}})
}

/// Returns a server with the running pods `one`, with a container, and `two`, with two.
fn machine() -> Machine {
    let mut machine = Machine::new();
    let now = machine.now;
    machine.server = machine.server.with_kubelet(now, &["node-1"]);
    assert_eq!(machine.post(PODS, &pod("one", &["main"])).status, 201);
    assert_eq!(machine.post(PODS, &pod("two", &["main", "side"])).status, 201);
    machine.advance(10_000);
    machine
}

fn websocket(target: &str, subprotocol: &str) -> Request {
    let mut request = Request::new(Method::GET, &format!("{PODS}/{target}")).expect("a valid target");
    request.headers.upgrade = UpgradeHeaders {
        connection: "Upgrade".to_owned(),
        upgrade: "websocket".to_owned(),
        websocket_protocols: subprotocol.to_owned(),
        websocket_key: "dGhlIHNhbXBsZSBub25jZQ==".to_owned(),
        websocket_version: "13".to_owned(),
        stream_protocols: None,
    };
    request
}

fn spdy(target: &str, version: &str) -> Request {
    let mut request = Request::new(Method::POST, &format!("{PODS}/{target}")).expect("a valid target");
    request.headers.upgrade = UpgradeHeaders {
        connection: "Upgrade".to_owned(),
        upgrade: "SPDY/3.1".to_owned(),
        stream_protocols: Some(version.to_owned()),
        ..UpgradeHeaders::default()
    };
    request
}

/// Returns the status and the message of a response, which of the kubelet's errors is their whole body.
fn answer(machine: &mut Machine, request: &Request) -> (u16, String) {
    match machine.server.handle(machine.now, request, None) {
        Response::Full { status, body, .. } => {
            let text = String::from_utf8_lossy(&body).into_owned();
            let document: Value = serde_json::from_str(&text).unwrap_or_default();
            (status, document["message"].as_str().map_or(text, str::to_owned))
        }
        Response::Upgrade(_) => (101, String::new()),
        other => panic!("{other:?}"),
    }
}

fn error(machine: &mut Machine, request: &Request) -> (u16, String) {
    let found = answer(machine, request);
    assert_ne!(found.0, 101, "{request:?}");
    found
}

#[test]
fn running_containers_have_streams() {
    let mut machine = machine();
    let command = "command=echo&command=a&stdout=true";
    for subprotocol in ["", V4, V5, "v4.base64.channel.k8s.io", "channel.k8s.io", "base64.channel.k8s.io"] {
        let request = websocket(&format!("one/exec?{command}"), subprotocol);
        assert_eq!(answer(&mut machine, &request), (101, String::new()), "{subprotocol}");
    }
    for version in [V4, "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"] {
        assert_eq!(answer(&mut machine, &spdy(&format!("one/exec?{command}"), version)).0, 101, "{version}");
    }
    assert_eq!(answer(&mut machine, &spdy("two/attach?container=side&stdout=1", V4)).0, 101);
    assert_eq!(answer(&mut machine, &spdy("one/portforward", "portforward.k8s.io")).0, 101);
    assert_eq!(answer(&mut machine, &websocket("one/portforward", "SPDY/3.1+portforward.k8s.io")).0, 101);
    assert_eq!(answer(&mut machine, &websocket("one/portforward?ports=80", V4)).0, 101);
    assert!(machine.journal().iter().all(|write| !write.contains("exec")), "streams write nothing");
}

#[test]
fn errors_are_those_of_the_api_server_and_of_the_kubelet() {
    let mut machine = machine();
    let run = "exec?command=ls&stdout=true";
    let mut check = |request: Request, status: u16, message: &str| {
        assert_eq!(error(&mut machine, &request), (status, message.to_owned()), "{request:?}");
    };
    check(spdy(&format!("none/{run}"), V4), 404, "pods \"none\" not found");
    check(spdy(&format!("one/{run}&container=x"), V4), 400, "container x is not valid for pod one");
    let choose = "a container name must be specified for pod two, choose one of: [main side]";
    check(websocket(&format!("two/{run}"), V5), 400, choose);
    check(spdy(&format!("one/{run}&dryRun=All"), V4), 400, "dryRun is not supported");
    let no_streams = "you must specify at least 1 of stdin, stdout, stderr";
    check(spdy("one/exec?command=ls", V4), 400, no_streams);
    check(spdy("one/exec?command=ls&stdout=false&stdin=0", V4), 400, no_streams);
    let plain = Request::new(Method::POST, &format!("{PODS}/one/{run}")).expect("valid");
    check(plain, 400, "Upgrade request required");
    let mut deleted = spdy(&format!("one/{run}"), V4);
    deleted.method = Method::DELETE;
    check(deleted, 405, "the server does not allow this method on the requested resource");
    for (ports, problem) in [("x", "invalid syntax"), ("", "invalid syntax"), ("99999", "value out of range")] {
        let message = format!("cannot convert to []int32: strconv.ParseUint: parsing {ports:?}: {problem}");
        check(websocket(&format!("one/portforward?ports={ports}"), V4), 400, &message);
    }
    check(websocket("one/portforward", V4), 400, "query parameter \"port\" is required");
    let unknown = "unable to upgrade: unable to negotiate protocol: client supports [v9], server accepts [v4.channel.k8s.io \
        v3.channel.k8s.io v2.channel.k8s.io channel.k8s.io]\n";
    check(spdy(&format!("one/{run}"), "v9"), 403, unknown);
    check(websocket(&format!("one/{run}"), "v9"), 403, "");
}

#[test]
fn pods_that_do_not_run_have_no_streams() {
    let mut machine = Machine::new();
    let run = "exec?command=ls&stdout=true";
    assert_eq!(machine.post(PODS, &pod("one", &["main"])).status, 201);
    let unscheduled = (400, "pod one does not have a host assigned".to_owned());
    assert_eq!(error(&mut machine, &spdy(&format!("one/{run}"), V4)), unscheduled);
    assert_eq!(error(&mut machine, &spdy("one/portforward", "portforward.k8s.io")), unscheduled);
    let now = machine.now;
    machine.server = machine.server.with_kubelet(now, &["node-1"]);
    let mut broken = pod("broken", &["main"]);
    broken["metadata"]["annotations"] = json!({"sindri.dev/pod-fate": "image-pull-error"});
    assert_eq!(machine.post(PODS, &broken).status, 201);
    machine.advance(5_000);
    let missing = (500, "container not found (\"main\")".to_owned());
    assert_eq!(error(&mut machine, &spdy(&format!("broken/{run}"), V4)), missing);
    let missing = (500, "container main not found in pod broken_default".to_owned());
    assert_eq!(error(&mut machine, &spdy("broken/attach?stdout=true", V4)), missing);
    let missing = (500, "pod not found (\"broken_default\")".to_owned());
    assert_eq!(error(&mut machine, &spdy("broken/portforward", "portforward.k8s.io")), missing);
    // The newest subprotocol is accepted before the kubelet is asked: the error follows on the streams.
    assert_eq!(answer(&mut machine, &websocket(&format!("broken/{run}"), V5)).0, 101);
    let mut lost = pod("lost", &["main"]);
    lost["spec"]["nodeName"] = json!("node-9");
    assert_eq!(machine.post(PODS, &lost).status, 201);
    assert_eq!(error(&mut machine, &spdy(&format!("lost/{run}"), V4)), (404, "nodes \"node-9\" not found".to_owned()));
}

#[test]
fn a_websocket_needs_the_permissions_to_get_and_to_create() {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let mut machine = machine();
    for (name, verb) in [("getter", "get"), ("creator", "create")] {
        let rules = json!([{"apiGroups": [""], "resources": ["pods/exec"], "verbs": [verb]}]);
        let role = json!({"metadata": {"name": name}, "rules": rules});
        let subjects = json!([{"kind": "User", "name": name}, {"kind": "User", "name": "both"}]);
        let reference = json!({"kind": "Role", "name": name});
        let binding = json!({"metadata": {"name": name}, "subjects": subjects, "roleRef": reference});
        assert_eq!(machine.post(&format!("{RBAC}/roles"), &role).status, 201);
        assert_eq!(machine.post(&format!("{RBAC}/rolebindings"), &binding).status, 201);
    }
    machine.server = machine.server.clone().with_administrator("the-token");
    let run = "one/exec?command=ls&stdout=true";
    let as_user = |user: &str, mut request: Request| {
        request.headers.authorization = Credentials("Bearer the-token".to_owned());
        request.headers.impersonation.user = Some(user.to_owned());
        request
    };
    let denied = |verb: &str, user: &str| {
        let message = format!(
            "pods \"one\" is forbidden: User \"{user}\" cannot {verb} resource \"pods/exec\" in API group \"\" in the namespace \"default\""
        );
        (403, message)
    };
    assert_eq!(answer(&mut machine, &as_user("both", websocket(run, V5))).0, 101);
    assert_eq!(answer(&mut machine, &as_user("creator", spdy(run, V4))).0, 101);
    assert_eq!(error(&mut machine, &as_user("creator", websocket(run, V5))), denied("get", "creator"));
    assert_eq!(error(&mut machine, &as_user("getter", spdy(run, V4))), denied("create", "getter"));
    let no_reason = (403, "pods \"one\" is forbidden: ".to_owned());
    assert_eq!(error(&mut machine, &as_user("getter", websocket(run, V5))), no_reason);
    assert_eq!(error(&mut machine, &as_user("getter", websocket("none/exec", V5))).0, 403, "before the pod is read");
}

#[test]
fn webhooks_see_the_options_of_a_request_and_can_deny_or_change_it() {
    const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    let mut machine = machine();
    let configuration = json!({
        "metadata": {"name": "guard"}, "webhooks": [{
            "name": "guard.test.io", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://hooks.test/guard"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/exec"]}],
        }],
    });
    assert_eq!(machine.post(MUTATING, &configuration).status, 201);
    let mut reviews = Vec::new();
    let mut handle = |target: &str, response: Value| {
        let request = spdy(target, V4);
        machine.server.handle_with(machine.now, &request, None, |call| {
            let review: Value = serde_json::from_slice(&call.body).expect("a review");
            let mut response = response.clone();
            response["uid"] = review["request"]["uid"].clone();
            reviews.push(review["request"].clone());
            let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
            let content_type = "application/json".to_owned();
            Ok(WebhookReply { status: 200, content_type, body: body.to_string().into() })
        })
    };
    let denial = json!({"allowed": false, "status": {"message": "no shells"}});
    let denied = handle("one/exec?command=sh&stdin=true&tty=true", denial);
    assert_eq!(denied.status(), Some(400), "{denied:?}");
    let message = "admission webhook \"guard.test.io\" denied the request: no shells";
    assert_eq!(denied.body_json().expect("a Status")["message"], message);
    let patch = json!([{"op": "add", "path": "/container", "value": "side"}]).to_string();
    let allowance = json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch)});
    assert!(
        matches!(handle("two/exec?command=ls&stdout=true", allowance), Response::Upgrade(_)),
        "the container is set"
    );
    assert_eq!(handle("two/attach?stdout=true", json!({"allowed": false})).status(), Some(400), "no rule is about it");
    assert_eq!(reviews.len(), 2);
    let review = &reviews[0];
    assert_eq!((&review["operation"], &review["subResource"]), (&json!("CONNECT"), &json!("exec")));
    assert_eq!(review["kind"], json!({"group": "", "version": "v1", "kind": "PodExecOptions"}));
    let options = json!({"kind": "PodExecOptions", "apiVersion": "v1", "stdin": true, "tty": true, "command": ["sh"]});
    assert_eq!((&review["object"], &review["oldObject"]), (&options, &Value::Null));
}
