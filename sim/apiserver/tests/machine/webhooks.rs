//! Admission webhooks, with a function that answers their calls.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};
use sindri_apiserver::{Handled, Request, Response, WebhookAnswer, WebhookAnswers, WebhookCall, WebhookReply};

use crate::harness::{APPLY, Machine, TestResponse};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

/// A webhook for writes of ConfigMaps, changed by a merge patch.
fn webhook(name: &str, changes: &Value) -> Value {
    let mut webhook = json!({
        "name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 3,
        "clientConfig": {"url": format!("https://hooks.test/{name}")},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
    });
    for (field, value) in changes.as_object().expect("changes are fields") {
        webhook[field] = value.clone();
    }
    webhook
}

fn configure(machine: &mut Machine, path: &str, name: &str, webhooks: &[Value]) {
    let kind = if path == MUTATING { "MutatingWebhookConfiguration" } else { "ValidatingWebhookConfiguration" };
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "webhooks": webhooks,
    });
    let created = machine.post(path, &configuration);
    assert_eq!(created.status, 201, "{:?}", created.body);
}

/// Returns the name of the webhook and the request of the review.
fn read_call(call: &WebhookCall) -> (String, Value) {
    let review: Value = serde_json::from_slice(&call.body).expect("a review");
    assert_eq!(review["kind"], "AdmissionReview");
    let path = call.url.split('/').nth(3).expect("a path").split('?').next().expect("a path");
    (path.to_owned(), review["request"].clone())
}

fn reply(call: &WebhookCall, response: Value) -> WebhookAnswer {
    let (_, request) = read_call(call);
    let mut response = response;
    response["uid"] = request["uid"].clone();
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    reply_text(200, &review.to_string())
}

fn reply_text(status: u16, text: &str) -> WebhookAnswer {
    Ok(WebhookReply { status, content_type: "application/json".to_owned(), body: text.to_owned().into() })
}

fn allow(call: &WebhookCall) -> WebhookAnswer {
    reply(call, json!({"allowed": true}))
}

fn patch(call: &WebhookCall, operations: &Value) -> WebhookAnswer {
    let patch = STANDARD.encode(operations.to_string());
    reply(call, json!({"allowed": true, "patchType": "JSONPatch", "patch": patch}))
}

fn send(
    machine: &mut Machine,
    request: &Request,
    answer: impl FnMut(&WebhookCall) -> WebhookAnswer,
) -> (TestResponse, Vec<String>) {
    let response = machine.server.handle_with(machine.now, request, None, answer);
    let Response::Full { status, headers, body } = response else { panic!("no complete response") };
    let warnings = headers.iter().filter(|(name, _)| *name == "warning").map(|(_, value)| value.clone()).collect();
    (TestResponse { status, body: serde_json::from_slice(&body).expect("JSON") }, warnings)
}

fn create(machine: &mut Machine, answer: impl FnMut(&WebhookCall) -> WebhookAnswer) -> TestResponse {
    let request = machine.request(Method::POST, MAPS, "application/json", &map("one"));
    send(machine, &request, answer).0
}

/// Creates a ConfigMap with one validating webhook, and returns the failure.
fn rejection(changes: &Value, answer: impl FnMut(&WebhookCall) -> WebhookAnswer) -> TestResponse {
    let mut machine = Machine::new();
    configure(&mut machine, VALIDATING, "tests", &[webhook("hook.test.io", changes)]);
    create(&mut machine, answer)
}

#[test]
fn a_request_that_awaits_a_webhook_changes_nothing() {
    let mut machine = Machine::new();
    configure(&mut machine, MUTATING, "first", &[webhook("mutating.test.io", &json!({}))]);
    configure(&mut machine, VALIDATING, "second", &[webhook("validating.test.io", &json!({}))]);
    machine.server.take_journal();
    let (before, revision) = (machine.server.export(), machine.server.revision());
    let request = machine.request(Method::POST, MAPS, "application/json", &map("one"));
    let mut answers = WebhookAnswers::default();
    let mut seen = Vec::new();
    for _ in 0..2 {
        // Time and other writes between the runs do not change what is reviewed.
        machine.advance(1_500);
        let Handled::Calls(calls) = machine.server.try_handle(machine.now, &request, None, &mut answers) else {
            panic!("the webhook was not called")
        };
        let [call] = calls.as_slice() else { panic!("{calls:?}") };
        let again = machine.server.try_handle(machine.now, &request, None, &mut answers);
        assert_eq!(again, Handled::Calls(calls.clone()), "the same review");
        assert_eq!((machine.server.export(), machine.server.revision()), (before.clone(), revision));
        seen.push(read_call(call).0);
        answers.add(call, allow(call));
    }
    assert!(machine.server.take_journal().is_empty());
    let Handled::Response(response) = machine.server.try_handle(machine.now, &request, None, &mut answers) else {
        panic!("both webhooks have answered")
    };
    assert_eq!(
        (response.status(), seen),
        (Some(201), vec!["mutating.test.io".to_owned(), "validating.test.io".to_owned()])
    );
    assert_eq!(machine.server.take_journal().len(), 1);
}

#[test]
fn an_object_that_changed_in_between_is_reviewed_again() {
    let mut machine = Machine::new();
    machine.post(MAPS, &map("one"));
    configure(&mut machine, VALIDATING, "tests", &[webhook("hook.test.io", &json!({}))]);
    let target = format!("{MAPS}/one");
    let request = machine.request(Method::PATCH, &target, "application/merge-patch+json", &json!({"data": {"c": "d"}}));
    let mut answers = WebhookAnswers::default();
    let first = machine.server.try_handle(machine.now, &request, None, &mut answers);
    let Handled::Calls(calls) = first else { panic!("the webhook was not called") };
    answers.add(&calls[0], allow(&calls[0]));
    let other = machine.request(Method::PATCH, &target, "application/merge-patch+json", &json!({"data": {"e": "f"}}));
    assert_eq!(send(&mut machine, &other, allow).0.status, 200);
    let second = machine.server.try_handle(machine.now, &request, None, &mut answers);
    let Handled::Calls(again) = second else { panic!("the changed object was not reviewed") };
    assert_eq!(read_call(&again[0]).1["object"]["data"], json!({"a": "b", "c": "d", "e": "f"}));
    answers.add(&again[0], allow(&again[0]));
    let done = machine.server.try_handle(machine.now, &request, None, &mut answers);
    assert!(matches!(done, Handled::Response(response) if response.status() == Some(200)));
}

#[test]
fn a_review_shows_the_request_and_the_objects() {
    let mut machine = Machine::new();
    configure(&mut machine, VALIDATING, "tests", &[webhook("hook.test.io", &json!({}))]);
    let mut requests = Vec::new();
    let target = format!("{MAPS}/one?fieldManager=me");
    let calls = [
        machine.request(Method::POST, MAPS, "application/json", &map("one")),
        machine.request(Method::PATCH, &target, "application/merge-patch+json", &json!({"data": {"a": "c"}})),
        machine.request(Method::DELETE, &format!("{MAPS}/one?dryRun=All"), "", &Value::Null),
    ];
    for request in &calls {
        let (response, _) = send(&mut machine, request, |call| {
            assert_eq!((call.host.as_str(), call.port, call.timeout.as_secs()), ("hooks.test", 443, 3));
            assert_eq!(call.url, "https://hooks.test/hook.test.io?timeout=3s");
            requests.push(read_call(call).1);
            allow(call)
        });
        assert!(response.status < 300, "{:?}", response.body);
    }
    let parts = |request: &Value| {
        let texts = ["/operation", "/name", "/object/data/a", "/oldObject/data/a", "/options/kind"];
        texts.map(|pointer| request.pointer(pointer).and_then(Value::as_str).unwrap_or("-").to_owned())
    };
    assert_eq!(parts(&requests[0]), ["CREATE", "one", "b", "-", "CreateOptions"]);
    assert_eq!(parts(&requests[1]), ["UPDATE", "one", "c", "b", "UpdateOptions"]);
    assert_eq!(parts(&requests[2]), ["DELETE", "one", "-", "c", "DeleteOptions"]);
    assert_eq!((&requests[1]["options"]["fieldManager"], &requests[1]["dryRun"]), (&json!("me"), &json!(false)));
    assert_eq!((&requests[2]["dryRun"], &requests[2]["object"]), (&json!(true), &Value::Null));
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    assert_eq!((&requests[0]["resource"], &requests[0]["namespace"]), (&resource, &json!("default")));
    assert_eq!(requests[0]["userInfo"]["username"], "administrator");
}

#[test]
fn denials_have_the_messages_of_the_real_server() {
    let cases = [
        (json!({}), (400, "", "admission webhook \"hook.test.io\" denied the request without explanation")),
        (
            json!({"message": "not today", "code": 403, "reason": "Forbidden"}),
            (403, "Forbidden", "admission webhook \"hook.test.io\" denied the request: not today"),
        ),
        (
            json!({"reason": "Conflict"}),
            (400, "Conflict", "admission webhook \"hook.test.io\" denied the request: Conflict"),
        ),
        (
            json!({"code": 200, "message": "fine"}),
            (400, "", "admission webhook \"hook.test.io\" denied the request: fine"),
        ),
    ];
    for (status, expected) in cases {
        let denied = rejection(&json!({}), |call| reply(call, json!({"allowed": false, "status": status})));
        assert_eq!(denied.failure(), expected);
    }
    let denied = rejection(&json!({"failurePolicy": "Ignore"}), |call| reply(call, json!({"allowed": false})));
    assert_eq!(denied.status, 400, "a denial is no failure");
}

#[test]
fn failed_calls_reject_or_are_ignored_by_the_failure_policy() {
    let post = "Post \"https://hooks.test/hook.test.io?timeout=3s\"";
    let cases: [(WebhookAnswer, String); 4] = [
        (
            Err("dial tcp 192.0.2.1:443: connect: connection refused".to_owned()),
            format!("failed to call webhook: {post}: dial tcp 192.0.2.1:443: connect: connection refused"),
        ),
        (
            Err("context deadline exceeded".to_owned()),
            format!("failed to call webhook: {post}: context deadline exceeded"),
        ),
        (
            reply_text(200, "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\"}"),
            "received invalid webhook response: webhook response was absent".to_owned(),
        ),
        (
            reply_text(500, "broken"),
            "failed to call webhook: an error on the server (\"broken\") has prevented the request from succeeding"
                .to_owned(),
        ),
    ];
    for (answer, reason) in cases {
        let failed = rejection(&json!({}), |_| answer.clone());
        let message = format!("Internal error occurred: failed calling webhook \"hook.test.io\": {reason}");
        assert_eq!(failed.failure(), (500, "InternalError", message.as_str()));
        let ignored = rejection(&json!({"failurePolicy": "Ignore"}), |_| answer.clone());
        assert_eq!(ignored.status, 201, "{:?}", ignored.body);
    }
}

#[test]
fn without_a_caller_webhooks_are_unreachable() {
    let mut machine = Machine::new();
    configure(&mut machine, VALIDATING, "tests", &[webhook("hook.test.io", &json!({}))]);
    let failed = machine.post(MAPS, &map("one"));
    assert_eq!(failed.status, 500);
    assert!(failed.failure().2.ends_with("connection refused"), "{:?}", failed.body);
    // Configurations are never reviewed, so that they can be removed.
    configure(
        &mut machine,
        VALIDATING,
        "all",
        &[webhook(
            "all.test.io",
            &json!({
                "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}],
            }),
        )],
    );
    assert_eq!(machine.delete(&format!("{VALIDATING}/all")).status, 200);
    assert_eq!(machine.delete(&format!("{VALIDATING}/tests")).status, 200);
    assert_eq!(machine.post(MAPS, &map("one")).status, 201);
}

#[test]
fn rules_selectors_and_conditions_choose_the_webhooks() {
    let rule = |fields: &Value| {
        let mut rule = webhook("x", &json!({}))["rules"][0].clone();
        fields.as_object().into_iter().flatten().for_each(|(name, value)| rule[name] = value.clone());
        json!({ "rules": [rule] })
    };
    let never = |expression: &str| json!({"matchConditions": [{"name": "c", "expression": expression}]});
    let passed_over = [
        rule(&json!({"apiGroups": ["apps"]})),
        rule(&json!({"apiVersions": ["v2"]})),
        rule(&json!({"operations": ["UPDATE", "DELETE"]})),
        rule(&json!({"resources": ["secrets", "configmaps/status"]})),
        rule(&json!({"scope": "Cluster"})),
        json!({"namespaceSelector": {"matchLabels": {"a": "b"}}}),
        json!({"namespaceSelector": {"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["default"]},
        ]}}),
        json!({"objectSelector": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}),
        never("object.metadata.name != 'one'"),
        never("request.operation == 'UPDATE'"),
    ];
    for changes in passed_over {
        let created = rejection(&changes, |_| panic!("called: {changes}"));
        assert_eq!(created.status, 201, "{changes}");
    }
    let called = [
        rule(&json!({"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]})),
        rule(&json!({"scope": "Namespaced"})),
        rule(&json!({"resources": ["*/*"]})),
        json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}),
        json!({"objectSelector": {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}}),
        never("oldObject == null && object.data.a == 'b'"),
    ];
    for changes in called {
        let created = rejection(&changes, |call| reply(call, json!({"allowed": false})));
        assert_eq!(created.status, 400, "{changes}");
    }
}

#[test]
fn a_condition_that_fails_counts_by_the_failure_policy() {
    let failing = |policy: &str| {
        let condition = json!({"name": "c", "expression": "object.data.missing == 'x'"});
        json!({"matchConditions": [condition], "failurePolicy": policy})
    };
    let failed = rejection(&failing("Fail"), |_| panic!("called"));
    let message = "configmaps \"one\" is forbidden: expression 'object.data.missing == 'x'' resulted in error: no such key: missing";
    assert_eq!(failed.failure(), (403, "Forbidden", message));
    assert_eq!(rejection(&failing("Ignore"), |_| panic!("called")).status, 201);
}

#[test]
fn a_webhook_for_another_version_gets_the_object_in_that_version() {
    let mut machine = Machine::new();
    let scalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    let rule = json!([{
        "apiGroups": ["autoscaling"], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["horizontalpodautoscalers"],
    }]);
    let hooks = [
        webhook("equivalent.test.io", &json!({ "rules": rule })),
        webhook("exact.test.io", &json!({"rules": rule, "matchPolicy": "Exact"})),
    ];
    configure(&mut machine, MUTATING, "tests", &hooks);
    let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}});
    let scaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "metrics": [metric]},
    });
    let request = machine.request(Method::POST, scalers, "application/json", &scaler);
    let (created, _) = send(&mut machine, &request, |call| {
        let (name, request) = read_call(call);
        assert_eq!(name, "equivalent.test.io");
        assert_eq!(request["kind"]["version"], "v1");
        assert_eq!(request["requestKind"]["version"], "v2");
        assert_eq!(request["object"]["spec"]["targetCPUUtilizationPercentage"], 50);
        patch(call, &json!([{"op": "replace", "path": "/spec/targetCPUUtilizationPercentage", "value": 70}]))
    });
    assert_eq!(created.status, 201, "{:?}", created.body);
    assert_eq!(created.body["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 70);
}

#[test]
fn mutating_webhooks_change_objects_one_after_the_other() {
    let mut machine = Machine::new();
    configure(&mut machine, MUTATING, "b", &[webhook("third.test.io", &json!({}))]);
    configure(
        &mut machine,
        MUTATING,
        "a",
        &[webhook("first.test.io", &json!({})), webhook("second.test.io", &json!({}))],
    );
    let mut seen = Vec::new();
    let created = create(&mut machine, |call| {
        let (name, request) = read_call(call);
        seen.push((name.clone(), request["object"]["data"].as_object().map(|data| data.len())));
        assert_eq!(request["object"]["metadata"].get("uid"), None, "it is set later");
        patch(call, &json!([{"op": "add", "path": format!("/data/{name}"), "value": "yes"}]))
    });
    let seen: Vec<(&str, usize)> = seen.iter().map(|(name, count)| (name.as_str(), count.unwrap_or(0))).collect();
    assert_eq!(seen, [("first.test.io", 1), ("second.test.io", 2), ("third.test.io", 3)]);
    let data = json!({"a": "b", "first.test.io": "yes", "second.test.io": "yes", "third.test.io": "yes"});
    assert_eq!((created.status, &created.body["data"]), (201, &data));
    let owned = created.body["metadata"]["managedFields"][0]["fieldsV1"]["f:data"].clone();
    assert_eq!(owned, json!({".": {}, "f:a": {}}), "webhooks own no fields");
}

#[test]
fn a_webhook_is_called_again_after_a_later_change() {
    let mut machine = Machine::new();
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let hooks =
        [webhook("again.test.io", &again), webhook("once.test.io", &json!({})), webhook("change.test.io", &json!({}))];
    configure(&mut machine, MUTATING, "tests", &hooks);
    let mut seen = Vec::new();
    let created = create(&mut machine, |call| {
        let (name, request) = read_call(call);
        seen.push(name.clone());
        let count = request["object"]["data"].as_object().map_or(0, |data| data.len());
        match name.as_str() {
            "change.test.io" => patch(call, &json!([{"op": "add", "path": "/data/changed", "value": "yes"}])),
            "again.test.io" => {
                patch(call, &json!([{"op": "add", "path": "/metadata/labels", "value": {"n": count.to_string()}}]))
            }
            _ => allow(call),
        }
    });
    assert_eq!(seen, ["again.test.io", "once.test.io", "change.test.io", "again.test.io"]);
    assert_eq!(created.body["metadata"]["labels"]["n"], "2");
    seen.clear();
    let settled = [webhook("again.test.io", &again)];
    let _deleted =
        send(&mut machine, &Request::new(Method::DELETE, &format!("{MUTATING}/tests")).expect("valid"), allow);
    configure(&mut machine, MUTATING, "tests", &settled);
    let request = machine.request(Method::POST, MAPS, "application/json", &map("two"));
    send(&mut machine, &request, |call| {
        seen.push(read_call(call).0);
        patch(call, &json!([{"op": "add", "path": "/data/x", "value": "y"}]))
    });
    assert_eq!(seen, ["again.test.io"], "its own change is no reason");
}

#[test]
fn patches_that_do_not_apply_are_errors() {
    let mut machine = Machine::new();
    configure(&mut machine, MUTATING, "tests", &[webhook("hook.test.io", &json!({}))]);
    let cases = [
        (
            json!([{"op": "add", "path": "/x/y", "value": 1}]),
            "Internal error occurred: add operation does not apply: doc is missing path: \"/x/y\": missing value",
        ),
        (
            json!([{"op": "remove", "path": "/data/c"}]),
            "Internal error occurred: error in remove for path: '/data/c': Unable to remove nonexistent key: c: missing value",
        ),
        (
            json!([{"op": "test", "path": "/data/a", "value": "c"}]),
            "Internal error occurred: testing value /data/a failed: test failed",
        ),
    ];
    for (operations, message) in cases {
        let failed = create(&mut machine, |call| patch(call, &operations));
        assert_eq!(failed.failure(), (500, "InternalError", message));
    }
    let untyped = STANDARD.encode("[]");
    let failed = create(&mut machine, |call| reply(call, json!({"allowed": true, "patch": untyped})));
    let reason = "received invalid webhook response: webhook returned response.patch but not response.patchType";
    let message = format!("Internal error occurred: failed calling webhook \"hook.test.io\": {reason}");
    assert_eq!(failed.failure(), (500, "InternalError", message.as_str()));
}

#[test]
fn a_changed_object_is_validated_and_defaulted() {
    let mut machine = Machine::new();
    configure(&mut machine, MUTATING, "tests", &[webhook("hook.test.io", &json!({}))]);
    let invalid =
        create(&mut machine, |call| patch(call, &json!([{"op": "add", "path": "/data/not valid", "value": "x"}])));
    assert_eq!((invalid.status, invalid.failure().1), (422, "Invalid"));
    let pods = "/api/v1/namespaces/default/pods";
    let rules =
        json!({"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]});
    configure(&mut machine, MUTATING, "sidecar", &[webhook("sidecar.test.io", &rules)]);
    let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "main", "image": "a"}]}});
    let request = machine.request(Method::POST, pods, "application/json", &pod);
    let (created, _) = send(&mut machine, &request, |call| {
        patch(call, &json!([{"op": "add", "path": "/spec/containers/-", "value": {"name": "sidecar", "image": "b"}}]))
    });
    let sidecar = &created.body["spec"]["containers"][1];
    assert_eq!((created.status, &sidecar["terminationMessagePolicy"]), (201, &json!("File")), "{:?}", created.body);
    assert_eq!(sidecar["volumeMounts"], created.body["spec"]["containers"][0]["volumeMounts"], "admission runs again");
    assert_eq!(created.body["spec"]["volumes"].as_array().map(Vec::len), Some(1));
}

#[test]
fn warnings_are_returned_once_each_and_with_a_denial() {
    let mut machine = Machine::new();
    configure(&mut machine, MUTATING, "tests", &[webhook("mutating.test.io", &json!({}))]);
    configure(&mut machine, VALIDATING, "tests", &[webhook("validating.test.io", &json!({}))]);
    let request = machine.request(Method::POST, MAPS, "application/json", &map("one"));
    let (response, warnings) = send(&mut machine, &request, |call| {
        let (name, _) = read_call(call);
        let allowed = name == "mutating.test.io";
        reply(call, json!({"allowed": allowed, "warnings": ["careful", name], "auditAnnotations": {"a": "b"}}))
    });
    assert_eq!(response.status, 400);
    assert_eq!(warnings, ["299 - \"careful\"", "299 - \"mutating.test.io\"", "299 - \"validating.test.io\""]);
}

#[test]
fn validating_webhooks_are_called_together() {
    let mut machine = Machine::new();
    configure(&mut machine, VALIDATING, "tests", &[webhook("a.test.io", &json!({})), webhook("b.test.io", &json!({}))]);
    let request = machine.request(Method::POST, MAPS, "application/json", &map("one"));
    let mut answers = WebhookAnswers::default();
    let Handled::Calls(calls) = machine.server.try_handle(machine.now, &request, None, &mut answers) else {
        panic!("no webhook was called")
    };
    assert_eq!(calls.iter().map(|call| read_call(call).0).collect::<Vec<_>>(), ["a.test.io", "b.test.io"]);
    answers.add(&calls[0], Err("gone".to_owned()));
    answers.add(&calls[1], reply(&calls[1], json!({"allowed": false})));
    let Handled::Response(response) = machine.server.try_handle(machine.now, &request, None, &mut answers) else {
        panic!("both have answered")
    };
    assert_eq!(response.status(), Some(500), "the first in order decides");
}

#[test]
fn services_resolve_to_endpoints_cluster_ips_or_external_names() {
    let mut machine = Machine::new();
    let reference =
        json!({"clientConfig": {"service": {"name": "hooks", "namespace": "default", "port": 8443, "path": "/x"}}});
    configure(&mut machine, VALIDATING, "tests", &[webhook("hook.test.io", &reference)]);
    let failed = create(&mut machine, |_| panic!("called"));
    assert!(
        failed
            .failure()
            .2
            .ends_with("Post \"https://hooks.default.svc:8443/x?timeout=3s\": service \"hooks\" not found")
    );
    let services = "/api/v1/namespaces/default/services";
    let service = |spec: &Value| json!({"metadata": {"name": "hooks"}, "spec": spec});
    machine.post(services, &service(&json!({"ports": [{"port": 443}]})));
    let failed = create(&mut machine, |_| panic!("called"));
    assert!(failed.failure().2.ends_with("no service port 8443 found for service \"hooks\""), "{:?}", failed.body);
    machine.delete(&format!("{services}/hooks"));
    let ip = machine.post(services, &service(&json!({"ports": [{"name": "https", "port": 8443}]}))).body["spec"]["clusterIP"].clone();
    let mut destinations = Vec::new();
    let mut deny = |call: &WebhookCall| {
        assert_eq!(call.server_name, "hooks.default.svc");
        destinations.push(format!("{}:{}", call.host, call.port));
        reply(call, json!({"allowed": false}))
    };
    create(&mut machine, &mut deny);
    let endpoints = json!({
        "metadata": {"name": "hooks"},
        "subsets": [{"addresses": [{"ip": "192.0.2.9"}], "ports": [{"name": "https", "port": 9443}]}],
    });
    assert_eq!(machine.post("/api/v1/namespaces/default/endpoints", &endpoints).status, 201);
    create(&mut machine, &mut deny);
    machine.delete(&format!("{services}/hooks"));
    machine.post(services, &service(&json!({"type": "ExternalName", "externalName": "hooks.example.com"})));
    create(&mut machine, &mut deny);
    let ip = format!("{}:8443", ip.as_str().expect("an address"));
    assert_eq!(destinations, [ip.as_str(), "192.0.2.9:9443", "hooks.example.com:8443"]);
}

#[test]
fn subresources_and_collections_are_reviewed() {
    let mut machine = Machine::new();
    let rules = json!({"rules": [
        {"apiGroups": ["", "apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments/scale", "configmaps"]},
    ]});
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    machine.post(deployments, &crate::harness::deployment("web"));
    configure(&mut machine, MUTATING, "tests", &[webhook("hook.test.io", &rules)]);
    let scale = machine.request(
        Method::PATCH,
        &format!("{deployments}/web/scale"),
        "application/merge-patch+json",
        &json!({"spec": {"replicas": 3}}),
    );
    let (scaled, _) = send(&mut machine, &scale, |call| {
        let (_, request) = read_call(call);
        assert_eq!((&request["kind"]["kind"], &request["subResource"]), (&json!("Scale"), &json!("scale")));
        assert_eq!(
            (&request["object"]["spec"]["replicas"], &request["oldObject"]["spec"]["replicas"]),
            (&json!(3), &json!(1))
        );
        patch(call, &json!([{"op": "replace", "path": "/spec/replicas", "value": 2}]))
    });
    assert_eq!((scaled.status, &scaled.body["spec"]["replicas"]), (200, &json!(2)), "{:?}", scaled.body);
    for name in ["one", "two"] {
        let apply = machine.request(Method::PATCH, &format!("{MAPS}/{name}?fieldManager=me"), APPLY, &map(name));
        assert_eq!(send(&mut machine, &apply, allow).0.status, 201);
    }
    let delete = machine.request(Method::DELETE, MAPS, "", &Value::Null);
    let (denied, _) = send(&mut machine, &delete, |call| {
        let (_, request) = read_call(call);
        let is_last = request["oldObject"]["metadata"]["name"] == "two";
        reply(call, json!({"allowed": !is_last}))
    });
    assert_eq!(denied.status, 400);
    assert_eq!(machine.get(&format!("{MAPS}/one")).status, 200, "nothing is deleted before all are reviewed");
    let (failed, _) =
        send(&mut machine, &delete, |call| patch(call, &json!([{"op": "add", "path": "/data/x", "value": "y"}])));
    let reason =
        "admission webhook \"hook.test.io\" attempted to modify the object, which is not supported for this operation";
    assert_eq!(failed.failure(), (500, "InternalError", format!("Internal error occurred: {reason}").as_str()));
}

#[test]
fn controllers_obey_policies_and_unresolved_services_but_call_no_webhooks() {
    let pods =
        json!({"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]});
    let mut unresolved = pods.clone();
    unresolved["clientConfig"] = json!({"service": {"name": "hooks", "namespace": "default"}});
    for (changes, expected) in [(&pods, 1), (&unresolved, 0)] {
        let mut machine = Machine::new();
        machine.server = machine.server.clone().with_workloads();
        configure(&mut machine, VALIDATING, "tests", &[webhook("hook.test.io", changes)]);
        machine.post("/apis/apps/v1/namespaces/default/deployments", &crate::harness::deployment("web"));
        machine.advance(10_000);
        let found = machine.get("/api/v1/namespaces/default/pods");
        assert_eq!(found.body["items"].as_array().map(Vec::len), Some(expected), "{changes}");
    }
    let mut machine = Machine::new();
    machine.server = machine.server.clone().with_workloads();
    let group = "/apis/admissionregistration.k8s.io/v1";
    let constraints = json!({"resourceRules": pods["rules"]});
    let policy = json!({"metadata": {"name": "no-pods"}, "spec": {
        "matchConstraints": constraints, "validations": [{"expression": "false", "message": "no pods"}],
    }});
    assert_eq!(machine.post(&format!("{group}/validatingadmissionpolicies"), &policy).status, 201);
    let binding =
        json!({"metadata": {"name": "no-pods"}, "spec": {"policyName": "no-pods", "validationActions": ["Deny"]}});
    assert_eq!(machine.post(&format!("{group}/validatingadmissionpolicybindings"), &binding).status, 201);
    machine.post("/apis/apps/v1/namespaces/default/deployments", &crate::harness::deployment("web"));
    machine.advance(10_000);
    assert_eq!(machine.get("/api/v1/namespaces/default/pods").body["items"], json!([]));
}
