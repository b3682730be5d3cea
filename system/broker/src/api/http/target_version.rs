//! Header with the version of the target state to which a response belongs.

use http::HeaderValue;
use serde_json::{Value, json};
use sindri_model::wire::TargetVersion;

/// Returns the value of the header.
pub(crate) fn to_header(version: TargetVersion) -> HeaderValue {
    HeaderValue::try_from(version.to_string()).expect("digits and a dot are valid in a header")
}

/// Describes the header.
pub(crate) fn describe_target_version() -> Value {
    let description = "Version of the target state with the policies of its stacks. Responses with the same version belong \
                       together.";
    json!({"description": description, "schema": {"type": "string"}})
}
