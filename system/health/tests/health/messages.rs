//! Messages from untrusted objects are bounded and on one line.

use serde_json::json;
use sindri_health::{Health, MESSAGE_CHARACTERS_MAX, assess};

fn health(reason: &str, message: &str) -> Health {
    let condition = json!({ "type": "Stalled", "status": "True", "reason": reason, "message": message });
    assess(&json!({ "apiVersion": "example.com/v1", "kind": "Thing", "status": { "conditions": [condition] } }))
}

#[test]
fn a_message_is_one_line_of_bounded_length() {
    let long = health("Because", &format!("a\nb{}", "ö".repeat(5_000))).message;
    assert_eq!(long.chars().count(), MESSAGE_CHARACTERS_MAX);
    assert!(long.starts_with("a bö") && long.ends_with("ö…"), "{long}");
    let whole = "x".repeat(MESSAGE_CHARACTERS_MAX);
    assert_eq!(health("Because", &whole).message, whole);
}

#[test]
fn an_invalid_reason_is_replaced() {
    for text in ["", "two words", "9lives", "a\nb", "Ünready", &"x".repeat(65)] {
        assert_eq!(health(text, "").reason, "Stalled", "{text:?}");
    }
    assert_eq!(health("Minimum_Replicas2", "").reason, "Minimum_Replicas2");
}

#[test]
fn a_condition_without_message_is_described_by_its_status() {
    assert_eq!(health("Because", " \n").message, "the condition Stalled is True");
}
