//! Checks of webhook subscriptions. No error repeats a URL, a header or a secret.

use std::collections::BTreeMap;

use http::header::AUTHORIZATION;
use sindri_model::limits::{WEBHOOK_LABELS_MAX, WEBHOOK_RETRIES_MAX};

use super::validation;
use crate::api::http::error_response::ErrorResponse;
use crate::event_types::EventPatterns;
use crate::webhooks::TargetPolicy;
use crate::webhooks::headers::ExtraHeaders;

use crate::webhooks::send::parse_timeout;
use crate::webhooks::signature::Secret;
use crate::webhooks::target::Target;

/// Code of every error without a code of its own.
const INVALID: &str = "invalid_webhook";

pub(crate) fn check_name(name: &str) -> Result<(), ErrorResponse> {
    validation::check_name("name", name).map_err(|error| error.with_code(INVALID))
}

pub(crate) fn check_url(url: &str, policy: TargetPolicy) -> Result<(), ErrorResponse> {
    if url.is_empty() {
        return Err(ErrorResponse::bad_request("url_required", "url must not be empty"));
    }
    let has_scheme = |scheme: &str| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    if !has_scheme("http://") && !has_scheme("https://") {
        return Err(ErrorResponse::bad_request("invalid_url_scheme", "url must begin with https:// or http://"));
    }
    Target::parse(url, policy).map(drop).map_err(|error| invalid(error.to_string()))
}

pub(crate) fn check_event_types(types: &[String]) -> Result<(), ErrorResponse> {
    EventPatterns::parse(types).map(drop).map_err(|error| invalid(error.to_string()))
}

pub(crate) fn check_auth_header(header: &str) -> Result<(), ErrorResponse> {
    let headers = BTreeMap::from([(AUTHORIZATION.to_string(), header.to_owned())]);
    ExtraHeaders::parse(&headers).map(drop).map_err(|error| invalid(format!("auth_header: {error}")))
}

pub(crate) fn check_labels(labels: &[String]) -> Result<(), ErrorResponse> {
    if labels.len() > WEBHOOK_LABELS_MAX {
        return Err(invalid(format!("there may be at most {WEBHOOK_LABELS_MAX} target_labels")));
    }
    labels.iter().try_for_each(|label| validation::check_label(label).map_err(|error| error.with_code(INVALID)))
}

pub(crate) fn check_retries(retries: i64) -> Result<(), ErrorResponse> {
    let is_allowed = (0..=i64::from(WEBHOOK_RETRIES_MAX)).contains(&retries);
    if is_allowed { Ok(()) } else { Err(invalid(format!("max_retries must be 0 to {WEBHOOK_RETRIES_MAX}"))) }
}

pub(crate) fn check_timeout(seconds: i64) -> Result<(), ErrorResponse> {
    // A negative value is rejected like 0.
    let seconds = u64::try_from(seconds).unwrap_or_default();
    parse_timeout(seconds).map(drop).map_err(|error| invalid(format!("timeout_seconds: {error}")))
}

pub(crate) fn parse_secret(text: &str) -> Result<Secret, ErrorResponse> {
    Secret::parse(text).map_err(|error| invalid(format!("signing_secret: {error}")))
}

fn invalid(message: String) -> ErrorResponse {
    ErrorResponse::bad_request(INVALID, message)
}
