//! Distinguishes the resourceVersion of an object from that of a list or bookmark.

use serde_json::Value;

/// Pointer of a resourceVersion, where a step records single fields.
pub const VERSION: &str = "/metadata/resourceVersion";

/// Returns true if a value's resourceVersion is that of a collection. It is unknown which other writes came before the read, so
/// that only the objects that are not newer can be recorded.
pub fn is_collection(value: &Value) -> bool {
    let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
    kind.ends_with("List") || kind == "Table" || value.get("items").is_some_and(Value::is_array)
}

/// Returns true for a bookmark event.
pub fn is_bookmark(event: &Value) -> bool {
    event.get("type").is_some_and(|kind| kind == "BOOKMARK")
}
