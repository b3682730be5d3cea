//! Replaces values that differ from run to run by placeholders, so that two recordings of the same version are equal.
//!
//! Equality is kept: the same UID has the same placeholder. So is the order of resourceVersions. Values that the script contains
//! literally are kept. The whole exchange is read first (`volatile`), because the meaning of a value may be known only later; then
//! it is rewritten (`rewrite`).

mod exchange_data;
mod resource_version;
mod rewrite;
mod text;
mod volatile;

use serde_json::Value;

use rewrite::Rewriter;
use volatile::VolatileValues;

pub use exchange_data::ExchangeData;
pub use resource_version::is_collection;

/// Returns the steps of an exchange with placeholders.
pub fn normalise(steps: &[Value], data: ExchangeData<'_>) -> Vec<Value> {
    let volatile = VolatileValues::collect(steps, data);
    let mut rewriter = Rewriter::new(volatile, data);
    steps.iter().map(|step| rewriter.rewrite_step(step)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use serde_json::json;

    fn normalise_transcript(steps: &[Value], script: &str) -> Vec<Value> {
        let none = BTreeSet::new();
        let responses: Vec<Value> = steps.iter().map(|step| json!({"response": step})).collect();
        let authority = "127.0.0.1:6443";
        let known = ExchangeData { script, bodies: steps, object_versions: &none, list_versions: &none, authority };
        normalise(&responses, known).into_iter().map(|mut step| step["response"].take()).collect()
    }

    #[test]
    fn the_same_uid_is_the_same_word_in_texts_too() {
        let (one, two) = ("0b1f2c3d-0000-4000-8000-00000000000a", "0b1f2c3d-0000-4000-8000-00000000000b");
        let steps = [json!({"a": two, "b": format!("uid {one}, not {two}")}), json!({ "c": one })];
        assert_eq!(
            normalise_transcript(&steps, ""),
            [json!({"a": "uid-1", "b": "uid uid-2, not uid-1"}), json!({"c": "uid-2"})]
        );
    }

    #[test]
    fn versions_keep_their_order_and_those_of_lists_say_what_they_are_newer_than() {
        let object = |version: &str| json!({"kind": "A", "metadata": {"resourceVersion": version}});
        let list = |version: &str| json!({"kind": "AList", "items": [], "metadata": {"resourceVersion": version}});
        let steps = [object("105"), list("107"), object("99"), list("105"), object("105"), list("3")];
        let expected = ["rv-2", "rv-2+", "rv-1", "rv-2+", "rv-2", "rv-0+"];
        let found: Vec<Value> =
            normalise_transcript(&steps, "").iter().map(|step| step["metadata"]["resourceVersion"].clone()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn versions_in_queries_and_messages_are_found_and_others_are_left_alone() {
        let steps = [
            json!({"metadata": {"resourceVersion": "105"}}),
            json!({"path": "/x?resourceVersion=105&limit=105", "message": "too old resource version: 1 (106)"}),
            json!({"message": "at most (105) characters", "resourceVersion": "7"}),
        ];
        let found = normalise_transcript(&steps, "");
        assert_eq!(found[1]["path"], "/x?resourceVersion=rv-1&limit=105");
        assert_eq!(found[1]["message"], "too old resource version: 1 (rv-1+)");
        assert_eq!(found[2], steps[2]);
    }

    #[test]
    fn versions_that_a_request_makes_up_stay_as_they_are() {
        let none = BTreeSet::new();
        let known =
            ExchangeData { script: "", bodies: &[], object_versions: &none, list_versions: &none, authority: "x" };
        let version = |version: &str| json!({"metadata": {"resourceVersion": version}});
        let steps = [json!({"request": version("1"), "response": version("99")}), json!({"request": version("99")})];
        let found = normalise(&steps, known);
        assert_eq!(found[0], json!({"request": version("1"), "response": version("rv-1")}));
        assert_eq!(found[1], json!({"request": version("rv-1")}));
    }

    #[test]
    fn chosen_parts_are_treated_like_the_whole() {
        let entry = |name: &str| json!({"manager": name});
        let steps = [
            json!({"kind": "A", "/metadata/resourceVersion": "7", "/metadata/managedFields": [entry("b"), entry("a")]}),
            json!({"kind": "AList", "/metadata/resourceVersion": "8"}),
            json!({"kind": "AList", "/metadata": {"resourceVersion": "8"}}),
            json!({"/object/metadata/resourceVersion": "9"}),
        ];
        let expected = [
            json!({"kind": "A", "/metadata/resourceVersion": "rv-1", "/metadata/managedFields": [entry("a"), entry("b")]}),
            json!({"kind": "AList", "/metadata/resourceVersion": "rv-1+"}),
            json!({"kind": "AList", "/metadata": {"resourceVersion": "rv-1+"}}),
            json!({"/object/metadata/resourceVersion": "rv-2"}),
        ];
        assert_eq!(normalise_transcript(&steps, ""), expected);
    }

    #[test]
    fn times_keep_their_precision_and_what_the_script_names_stays() {
        let steps =
            [json!({"a": "2026-11-15T08:48:39Z", "b": "at 2026-11-15T08:48:39.123456Z", "c": "2020-01-01T00:00:00Z"})];
        let expected =
            json!({"a": "2000-01-01T00:00:00Z", "b": "at 2000-01-01T00:00:00.000000Z", "c": "2020-01-01T00:00:00Z"});
        assert_eq!(normalise_transcript(&steps, "{t: 2020-01-01T00:00:00Z}"), [expected]);
    }

    #[test]
    fn generated_names_addresses_ports_and_continue_tokens_are_numbered() {
        let steps = [
            json!({"metadata": {"generateName": "web-", "name": "web-x7k2p"}}),
            json!({"spec": {"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "ports": [{"nodePort": 31234}]}}),
            json!({"message": "pods \"web-x7k2p\" and 10.96.0.12 and 10.96.0.1"}),
            json!({"metadata": {"continue": "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"}}),
            json!({"path": "/x?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ&limit=1"}),
        ];
        let expected = [
            json!({"metadata": {"generateName": "web-", "name": "web-generated-1"}}),
            json!({"spec": {"clusterIP": "cluster-ip-1", "clusterIPs": ["cluster-ip-1"], "ports": [{"nodePort": 30001}]}}),
            json!({"message": "pods \"web-generated-1\" and 10.96.0.12 and cluster-ip-1"}),
            json!({"metadata": {"continue": "continue-1"}}),
            json!({"path": "/x?continue=continue-1&limit=1"}),
        ];
        assert_eq!(normalise_transcript(&steps, ""), expected);
    }

    #[test]
    fn the_order_of_managers_does_not_depend_on_the_clock() {
        let manager = |name: &str, operation: &str| json!({"manager": name, "operation": operation});
        let fields = json!([manager("b", "Update"), manager("a", "Update"), manager("c", "Apply")]);
        let found = &normalise_transcript(&[json!({"metadata": {"managedFields": fields}})], "")[0];
        let names: Vec<&Value> =
            found["metadata"]["managedFields"].as_array().unwrap().iter().map(|entry| &entry["manager"]).collect();
        assert_eq!(names, ["c", "a", "b"]);
    }

    #[test]
    fn what_is_wrong_is_said_in_one_order() {
        let cause = |field: &str| json!({"field": field, "message": "Required value"});
        let status =
            |message: &str, fields: [&str; 2]| json!({"message": message, "details": {"causes": fields.map(cause)}});
        let found =
            normalise_transcript(&[status("A is invalid: [b: Required value, a: Required value]", ["b", "a"])], "");
        assert_eq!(found, [status("A is invalid: [a: Required value, b: Required value]", ["a", "b"])]);
    }

    #[test]
    fn what_is_wrong_in_lines_is_said_in_one_order() {
        let found = normalise_transcript(&[json!({"message": "of a: errors:\n  .spec.b: no\n  .spec.a: no"})], "");
        assert_eq!(found, [json!({"message": "of a: errors:\n  .spec.a: no\n  .spec.b: no"})]);
    }

    #[test]
    fn the_volume_of_a_token_has_a_generated_name() {
        let found =
            normalise_transcript(&[json!({"name": "kube-api-access-x7k2p"}), json!({"name": "kube-api-access-"})], "");
        assert_eq!(found, [json!({"name": "kube-api-access-generated-1"}), json!({"name": "kube-api-access-"})]);
    }

    #[test]
    fn ages_in_tables_are_one_word() {
        let table = json!({"kind": "Table", "rows": [{"cells": ["web", 3, "1m2s"]}]});
        assert_eq!(normalise_transcript(&[table], "")[0]["rows"][0]["cells"], json!(["web", 3, "<age>"]));
        let single = json!({"kind": "Table", "/rows/0/cells": ["web", 3, "1m2s"]});
        assert_eq!(normalise_transcript(&[single], "")[0]["/rows/0/cells"], json!(["web", 3, "<age>"]));
    }

    #[test]
    fn tokens_certificates_and_the_server_have_words_of_their_own() {
        let steps = [json!({
            "token": "eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOltdfQ.c2lnbmF0dXJl",
            "ca.crt": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
            "serverAddress": "192.0.2.7:21002",
            "message": "see https://127.0.0.1:6443/x",
        })];
        let expected = json!({
            "token": "token-1", "ca.crt": "<certificates>", "serverAddress": "<server>", "message": "see https://<server>/x",
        });
        assert_eq!(normalise_transcript(&steps, ""), [expected]);
    }
}
