//! Checks of webhook subscriptions. No error repeats a URL, a header or a secret.

use std::collections::BTreeMap;

use http::header::AUTHORIZATION;

use super::validation;
use crate::api::http::error_response::ErrorResponse;
use crate::event_types::EventPatterns;
use crate::webhooks::TargetPolicy;
use crate::webhooks::headers::ExtraHeaders;
use crate::webhooks::schedule::RETRIES_MAX;
use crate::webhooks::send::parse_timeout;
use crate::webhooks::signature::Secret;
use crate::webhooks::target::Target;

const LABELS_MAX: usize = 100;

pub(crate) fn check_name(name: &str) -> Result<(), ErrorResponse> {
    validation::check_name("name", name)
}

pub(crate) fn check_url(url: &str, policy: TargetPolicy) -> Result<(), ErrorResponse> {
    let target = Target::parse(url, policy);
    target.map(drop).map_err(|error| ErrorResponse::bad_request("invalid_webhook_url", error.to_string()))
}

pub(crate) fn check_event_types(types: &[String]) -> Result<(), ErrorResponse> {
    EventPatterns::parse(types)
        .map(drop)
        .map_err(|error| ErrorResponse::bad_request("invalid_event_type", error.to_string()))
}

pub(crate) fn check_auth_header(header: &str) -> Result<(), ErrorResponse> {
    let headers = BTreeMap::from([(AUTHORIZATION.to_string(), header.to_owned())]);
    ExtraHeaders::parse(&headers).map(drop).map_err(|error| invalid(format!("auth_header: {error}")))
}

pub(crate) fn check_labels(labels: &[String]) -> Result<(), ErrorResponse> {
    if labels.len() > LABELS_MAX {
        return Err(invalid(format!("there may be at most {LABELS_MAX} target_labels")));
    }
    labels.iter().try_for_each(|label| validation::check_label(label))
}

pub(crate) fn check_retries(retries: i64) -> Result<(), ErrorResponse> {
    let is_allowed = (0..=i64::from(RETRIES_MAX)).contains(&retries);
    if is_allowed { Ok(()) } else { Err(invalid(format!("max_retries must be 0 to {RETRIES_MAX}"))) }
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
    ErrorResponse::bad_request("invalid_webhook", message)
}
