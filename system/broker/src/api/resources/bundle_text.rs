//! The check of the text of a bundle, and its size.
//!
//! The broker rejects a text that is not YAML, a text without any document, a text above the limits of the parser, and a
//! text that cannot be stored. Agents validate the objects of a bundle, because they know their clusters.

use sindri_model::wire::DeploymentObject;
use sindri_model::yaml::{YamlError, parse_documents};

use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::LARGE_BYTES;
use crate::broker::Broker;

pub(super) const INVALID: &str = "invalid_deployment_object";

/// Returns true if the text is parsed on another thread. Without a check of the owner before, any key could cause that work.
pub(super) fn is_large(text: &str) -> bool {
    text.len() >= LARGE_BYTES
}

/// Checks a text, a large one on another thread, and returns it.
pub(super) async fn check_text(broker: &Broker, text: String, may_be_empty: bool) -> Result<String, ErrorResponse> {
    if !is_large(&text) {
        return check(&text, may_be_empty).map(|()| text);
    }
    let checked = broker.offload.run(move || check(&text, may_be_empty).map(|()| text)).await;
    checked.ok_or_else(|| ErrorResponse::bad_request(INVALID, "the YAML cannot be parsed"))?
}

fn check(text: &str, may_be_empty: bool) -> Result<(), ErrorResponse> {
    if text.contains('\0') {
        return Err(ErrorResponse::bad_request(INVALID, "the YAML contains a NUL character"));
    }
    match parse_documents(text) {
        Ok(documents) if documents.is_empty() && !may_be_empty => {
            Err(ErrorResponse::bad_request(INVALID, "the YAML contains no document"))
        }
        Ok(_) => Ok(()),
        Err(errors) => Err(ErrorResponse::bad_request(INVALID, describe_errors(&errors))),
    }
}

/// Limit on the invalid documents that an error names.
const ERRORS_MAX: usize = 10;

/// Returns the errors of invalid documents, each with its line and column; of a text above a limit only that.
fn describe_errors(errors: &[YamlError]) -> String {
    if let Some(limit) = errors.iter().find(|error| error.is_limit) {
        return limit.to_string();
    }
    let named: Vec<String> = errors.iter().take(ERRORS_MAX).map(YamlError::to_string).collect();
    let rest = errors.len() - named.len();
    let more = if rest == 0 { String::new() } else { format!("; and {rest} more invalid documents") };
    format!("the text is not valid YAML: {}{more}", named.join("; "))
}

/// Returns the most bytes that the bundle of a revision takes in the store, where it may be encrypted. The store ends a page by
/// these bytes.
pub(super) fn stored_bytes_max(revision: &DeploymentObject) -> usize {
    2 * revision.yaml_content.len()
}
