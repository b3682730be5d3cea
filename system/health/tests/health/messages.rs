//! Words are taken from objects that anybody may have written: they are bounded, and on one line.

use serde_json::json;
use sindri_health::{Health, MESSAGE_CHARACTERS_MAX, assess};

fn said(reason: &str, message: &str) -> Health {
    let condition = json!({ "type": "Stalled", "status": "True", "reason": reason, "message": message });
    assess(&json!({ "apiVersion": "example.com/v1", "kind": "Thing", "status": { "conditions": [condition] } }))
}

#[test]
fn a_message_is_one_line_and_never_longer_than_the_longest() {
    let long = said("Because", &format!("a\nb{}", "ö".repeat(5_000))).message;
    assert_eq!(long.chars().count(), MESSAGE_CHARACTERS_MAX);
    assert!(long.starts_with("a bö") && long.ends_with("ö…"), "{long}");
    let whole = "x".repeat(MESSAGE_CHARACTERS_MAX);
    assert_eq!(said("Because", &whole).message, whole);
}

#[test]
fn what_is_no_word_is_no_reason() {
    for text in ["", "two words", "9lives", "a\nb", "Ünready", &"x".repeat(65)] {
        assert_eq!(said(text, "").reason, "Stalled", "{text:?}");
    }
    assert_eq!(said("Minimum_Replicas2", "").reason, "Minimum_Replicas2");
}

#[test]
fn what_has_no_words_says_what_it_is() {
    assert_eq!(said("Because", " \n").message, "the condition Stalled is True");
}
