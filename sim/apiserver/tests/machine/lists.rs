//! Lists: selectors, pages, and the Table and PartialObjectMetadata forms.

use http::Method;
use serde_json::{Value, json};

use crate::harness::*;

fn names(response: &TestResponse) -> Vec<String> {
    let items = response.body["items"].as_array().expect("a list");
    items.iter().map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
}

fn create_three(machine: &mut Machine) {
    for (name, tier) in [("a", "x"), ("b", "y"), ("c", "x")] {
        let mut body = config_map(name, &json!({}));
        body["metadata"]["labels"] = json!({"tier": tier});
        assert_eq!(machine.post(CONFIG_MAPS, &body).status, 201);
    }
}

#[test]
fn selectors_filter_lists() {
    let mut machine = Machine::new();
    create_three(&mut machine);
    for (query, expected) in [
        ("labelSelector=tier%3Dx", vec!["a", "c"]),
        ("labelSelector=tier%20notin%20(x),tier", vec!["b"]),
        ("fieldSelector=metadata.name%3Db", vec!["b"]),
    ] {
        assert_eq!(names(&machine.get(&format!("{CONFIG_MAPS}?{query}"))), expected, "{query}");
    }
    let everywhere = machine.get("/api/v1/configmaps?labelSelector=tier");
    assert_eq!(names(&everywhere), ["a", "b", "c"]);
    assert_eq!((&everywhere.body["kind"], everywhere.body["items"][0].get("kind")), (&json!("ConfigMapList"), None));
    assert_eq!(machine.get(&format!("{CONFIG_MAPS}?fieldSelector=data.x%3D1")).failure().0, 400);
}

#[test]
fn all_pages_of_a_list_show_the_same_resource_version() {
    let mut machine = Machine::new();
    create_three(&mut machine);
    let first = machine.get(&format!("{CONFIG_MAPS}?limit=2"));
    assert_eq!(
        (names(&first), &first.body["metadata"]["remainingItemCount"]),
        (vec!["a".to_owned(), "b".to_owned()], &json!(2))
    );
    // The change after the first page is not in the second one.
    machine.delete(&format!("{CONFIG_MAPS}/c"));
    machine.post(CONFIG_MAPS, &config_map("d", &json!({})));
    let token = first.body["metadata"]["continue"].as_str().expect("a token").to_owned();
    let second = machine.get(&format!("{CONFIG_MAPS}?limit=2&continue={token}"));
    assert_eq!(names(&second), ["c", "kube-root-ca.crt"]);
    assert_eq!(second.resource_version(), first.resource_version());
    assert_eq!(second.body["metadata"].get("continue"), None);
    machine.server.compact();
    let expired = machine.get(&format!("{CONFIG_MAPS}?limit=2&continue={token}"));
    assert_eq!((expired.failure().0, expired.failure().1), (410, "Expired"));
    let token = expired.body["metadata"]["continue"].as_str().expect("a fresh token").to_owned();
    let rest = machine.get(&format!("{CONFIG_MAPS}?limit=2&continue={token}"));
    assert_eq!(names(&rest), ["d", "kube-root-ca.crt"]);
    assert_eq!(machine.get(&format!("{CONFIG_MAPS}?continue=nonsense")).failure().0, 400);
}

fn get_as(machine: &mut Machine, target: &str, accept: &str) -> TestResponse {
    let mut request = machine.request(Method::GET, target, "", &Value::Null);
    accept.clone_into(&mut request.headers.accept);
    machine.send(&request)
}

#[test]
fn lists_are_served_as_tables_and_as_metadata_only() {
    let mut machine = Machine::new();
    create_three(&mut machine);
    machine.advance(90_000);
    let table = get_as(&mut machine, CONFIG_MAPS, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
    assert_eq!(table.body["kind"], "Table");
    assert_eq!(table.body["rows"][0]["cells"], json!(["a", 0, "90s"]));
    assert_eq!(table.body["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let partial = get_as(&mut machine, CONFIG_MAPS, metadata);
    assert_eq!(
        (&partial.body["kind"], partial.body["items"][0].get("data")),
        (&json!("PartialObjectMetadataList"), None)
    );
    let one = get_as(
        &mut machine,
        &format!("{CONFIG_MAPS}/a"),
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    );
    assert_eq!((&one.body["kind"], &one.body["metadata"]["name"]), (&json!("PartialObjectMetadata"), &json!("a")));
    assert_eq!(get_as(&mut machine, CONFIG_MAPS, "text/html").failure().0, 406);
}

#[test]
fn a_future_resource_version_times_out() {
    let mut machine = Machine::new();
    assert_eq!(machine.get(&format!("{CONFIG_MAPS}?resourceVersion=999999")).failure().0, 504);
    assert_eq!(machine.get(&format!("{CONFIG_MAPS}?resourceVersion=x")).failure().0, 400);
}
