//! Error responses with the messages of the real server.

use http::Method;
use serde_json::{Value, json};

use crate::harness::*;

#[test]
fn a_missing_object_is_not_found() {
    let mut machine = Machine::new();
    for (target, message) in [
        (format!("{CONFIG_MAPS}/x"), "configmaps \"x\" not found"),
        (format!("{DEPLOYMENTS}/x"), "deployments.apps \"x\" not found"),
        ("/api/v1/namespaces/x".to_owned(), "namespaces \"x\" not found"),
    ] {
        assert_eq!(machine.get(&target).failure(), (404, "NotFound", message));
    }
    let details = machine.get(&format!("{DEPLOYMENTS}/x")).body["details"].clone();
    assert_eq!(details, json!({"name": "x", "group": "apps", "kind": "deployments"}));
}

#[test]
fn an_unknown_path_returns_plain_text() {
    let mut machine = Machine::new();
    for target in ["/apis/nowhere/v1/things", "/x"] {
        let response = machine.get(target);
        assert_eq!((response.status, &response.body), (404, &json!("404 page not found\n")), "{target}");
    }
}

#[test]
fn an_unknown_resource_of_a_known_group_returns_a_status() {
    let mut machine = Machine::new();
    for target in ["/api/v1/namespaces/default/things", "/api/v1/configmaps/x", "/apis/apps/v2", "/api/v1//namespaces"]
    {
        let message = "the server could not find the requested resource";
        assert_eq!(machine.get(target).failure(), (404, "NotFound", message), "{target}");
    }
}

#[test]
fn creating_an_object_twice_already_exists() {
    let mut machine = Machine::new();
    assert_eq!(machine.post(CONFIG_MAPS, &config_map("a", &json!({}))).status, 201);
    let second = machine.post(CONFIG_MAPS, &config_map("a", &json!({})));
    assert_eq!(second.failure(), (409, "AlreadyExists", "configmaps \"a\" already exists"));
}

#[test]
fn creating_in_a_missing_namespace_names_the_namespace() {
    let mut machine = Machine::new();
    let response = machine.post("/api/v1/namespaces/x/configmaps", &config_map("a", &json!({})));
    assert_eq!(response.failure(), (404, "NotFound", "namespaces \"x\" not found"));
    let applied = machine.apply("/api/v1/namespaces/x/configmaps/a", &config_map("a", &json!({})));
    assert_eq!(applied.failure(), response.failure());
}

/// One row: path and body of a POST, then the expected status code, reason, part of the message and fields of the causes.
type Row = (&'static str, Value, u16, &'static str, &'static str, Vec<&'static str>);

#[test]
fn invalid_objects_are_rejected_with_the_fields_named() {
    let mut machine = Machine::new();
    machine.create_gadget_crd();
    let mut no_selector = deployment("web");
    no_selector["spec"]["selector"] = Value::Null;
    let mut other_labels = deployment("web");
    other_labels["spec"]["template"]["metadata"]["labels"] = json!({"app": "other"});
    let mut no_image = deployment("web");
    no_image["spec"]["template"]["spec"]["containers"] = json!([{"name": "main"}, {"image": "x"}]);
    let service = |spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec});
    let mut wrong_name = gadget_crd();
    wrong_name["metadata"]["name"] = json!("other.example.io");
    let services = "/api/v1/namespaces/default/services";
    let rows: Vec<Row> = vec![
        (
            CONFIG_MAPS,
            config_map("A_b", &json!({})),
            422,
            "Invalid",
            "ConfigMap \"A_b\" is invalid: metadata.name: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain must consist of",
            vec!["metadata.name"],
        ),
        (
            CONFIG_MAPS,
            config_map("", &json!({})),
            422,
            "Invalid",
            "metadata.name: Required value: name or generateName is required",
            vec!["metadata.name"],
        ),
        (
            CONFIG_MAPS,
            config_map("a", &json!({"x": 1})),
            400,
            "BadRequest",
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
            vec![],
        ),
        (
            CONFIG_MAPS,
            config_map("a", &json!({"b c": "1"})),
            422,
            "Invalid",
            "data[b c]: Invalid value: \"b c\": a valid config key",
            vec!["data[b c]"],
        ),
        (
            DEPLOYMENTS,
            no_selector,
            422,
            "Invalid",
            "Deployment.apps \"web\" is invalid: [spec.selector: Required value",
            vec!["spec.selector", "spec.template.metadata.labels"],
        ),
        (
            DEPLOYMENTS,
            other_labels,
            422,
            "Invalid",
            "`selector` does not match template `labels`",
            vec!["spec.template.metadata.labels"],
        ),
        (
            DEPLOYMENTS,
            no_image,
            422,
            "Invalid",
            "[spec.template.spec.containers[0].image: Required value, spec.template.spec.containers[1].name: Required value]",
            vec!["spec.template.spec.containers[0].image", "spec.template.spec.containers[1].name"],
        ),
        (
            services,
            service(json!({})),
            422,
            "Invalid",
            "Service \"s\" is invalid: spec.ports: Required value",
            vec!["spec.ports"],
        ),
        (
            services,
            service(json!({"ports": [{"port": 0}]})),
            422,
            "Invalid",
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            vec!["spec.ports[0].port", "spec.ports[0].targetPort"],
        ),
        (
            CRDS,
            wrong_name,
            422,
            "Invalid",
            "metadata.name: Invalid value: \"other.example.io\": must be spec.names.plural+\".\"+spec.group",
            vec!["metadata.name"],
        ),
        (
            GADGETS,
            gadget("g", &json!({"size": "big"})),
            422,
            "Invalid",
            "Gadget.example.io \"g\" is invalid: spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
            vec!["spec.size"],
        ),
        (GADGETS, gadget("g", &json!({})), 422, "Invalid", "spec.size: Required value", vec!["spec.size"]),
        (
            GADGETS,
            gadget("g", &json!({"size": 0})),
            422,
            "Invalid",
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
            vec!["spec.size"],
        ),
        (
            GADGETS,
            gadget("g", &json!({"size": 1, "colour": "green"})),
            422,
            "Invalid",
            "spec.colour: Unsupported value: \"green\": supported values: \"red\", \"blue\"",
            vec!["spec.colour"],
        ),
    ];
    for (target, body, status, reason, message, fields) in rows {
        for target in [target.to_owned(), format!("{target}?dryRun=All")] {
            let response = machine.post(&target, &body);
            assert_eq!((response.status, response.failure().1), (status, reason), "{body}: {}", response.body);
            assert!(response.failure().2.contains(message), "{}", response.body);
            let causes = response.body["details"]["causes"].as_array().cloned().unwrap_or_default();
            let cause_fields: Vec<&str> = causes.iter().filter_map(|cause| cause["field"].as_str()).collect();
            assert_eq!(cause_fields, fields, "{}", response.body);
        }
    }
    assert_eq!(machine.journal(), Vec::<String>::new());
}

#[test]
fn applying_a_value_of_the_wrong_type_is_an_internal_error() {
    let mut machine = Machine::new();
    let response = machine.apply(&format!("{CONFIG_MAPS}/a"), &config_map("a", &json!({"x": 1})));
    let message = "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .data.x: expected string, got &value.valueUnstructured{Value:1}";
    assert_eq!(response.failure(), (500, "", message));
}

#[test]
fn request_bodies_are_checked_before_objects() {
    let mut machine = Machine::new();
    let mut broken = machine.request(Method::POST, CONFIG_MAPS, "application/json", &json!({}));
    broken.body = "{".into();
    let response = machine.send(&broken);
    assert_eq!(response.failure().0, 400);
    assert!(
        response.failure().2.starts_with("the object provided is unrecognized (must be of type ConfigMap)"),
        "{}",
        response.body
    );

    let media = machine.request(Method::POST, CONFIG_MAPS, "text/plain", &config_map("a", &json!({})));
    assert_eq!(machine.send(&media).failure().0, 415);

    let patch = machine.patch(&format!("{CONFIG_MAPS}/a"), "text/plain", &json!({}));
    assert_eq!(patch.failure(), (415, "UnsupportedMediaType", "415: Unsupported Media Type"));

    let mut large = machine.request(Method::POST, CONFIG_MAPS, "application/json", &json!({}));
    large.body = vec![b' '; 3 * 1024 * 1024 + 1].into();
    let message = "Request entity too large: limit is 3145728";
    assert_eq!(machine.send(&large).failure(), (413, "RequestEntityTooLarge", message));

    let mismatch = machine.put(&format!("{CONFIG_MAPS}/b"), &config_map("a", &json!({})));
    let message = "the name of the object (a) does not match the name on the URL (b)";
    assert_eq!(mismatch.failure(), (400, "BadRequest", message));
    let elsewhere = machine.post(CONFIG_MAPS, &json!({"metadata": {"name": "a", "namespace": "other"}}));
    let message = "the namespace of the provided object does not match the namespace sent on the request";
    assert_eq!(elsewhere.failure(), (400, "BadRequest", message));
}

#[test]
fn custom_resources_do_not_support_strategic_merge_patch() {
    let mut machine = Machine::new();
    machine.create_gadget_crd();
    machine.post(GADGETS, &gadget("g", &json!({"size": 1})));
    let response = machine.patch(&format!("{GADGETS}/g"), STRATEGIC, &json!({}));
    assert_eq!(response.failure().0, 415);
    assert!(!response.failure().2.contains("strategic"), "{}", response.body);
}

#[test]
fn methods_and_options_are_checked() {
    let mut machine = Machine::new();
    assert_eq!(machine.put(CONFIG_MAPS, &json!({})).failure().0, 405);
    assert_eq!(machine.delete("/api/v1/namespaces").failure().0, 405);
    let response = machine.post(&format!("{CONFIG_MAPS}?dryRun=Some"), &config_map("a", &json!({})));
    assert_eq!(
        response.failure(),
        (
            422,
            "Invalid",
            "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\""
        )
    );
    let response = machine.patch(&format!("{CONFIG_MAPS}/a"), APPLY, &config_map("a", &json!({})));
    assert_eq!(
        response.failure(),
        (
            422,
            "Invalid",
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
        )
    );
    let response = machine.patch(&format!("{CONFIG_MAPS}/a?force=true"), MERGE, &json!({}));
    assert_eq!(
        response.failure(),
        (
            422,
            "Invalid",
            "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch"
        )
    );
}

#[test]
fn unknown_fields_of_custom_resources_are_pruned_with_a_warning_or_rejected() {
    let mut machine = Machine::new();
    machine.create_gadget_crd();
    let body = gadget("g", &json!({"size": 1, "shape": "round"}));
    let strict = machine.post(&format!("{GADGETS}?fieldValidation=Strict"), &body);
    let message =
        "Gadget in version \"v1\" cannot be handled as a Gadget: strict decoding error: unknown field \"spec.shape\"";
    assert_eq!(strict.failure(), (400, "BadRequest", message));
    let request = machine.request(Method::POST, GADGETS, "application/json", &body);
    let response = machine.server.handle(machine.now, &request, None);
    assert_eq!(response.header("warning"), Some("299 - \"unknown field \\\"spec.shape\\\"\""));
    let stored = response.body_json().expect("an object");
    assert_eq!(stored["spec"], json!({"size": 1, "colour": "red"}));
}
