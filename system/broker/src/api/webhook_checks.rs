//! What a subscription may say. No refusal repeats an address, a header or a secret.

use super::answer::Refusal;
use super::checks;
use crate::webhooks::TargetPolicy;
use crate::webhooks::schedule::RETRIES_MAX;
use crate::webhooks::signature::Secret;
use crate::webhooks::subscription::Patterns;
use crate::webhooks::target::Target;

const TIMEOUT_SECONDS_MAX: i64 = 60;
const AUTH_HEADER_CHARS_MAX: usize = 4096;
const LABELS_MAX: usize = 100;

pub(crate) fn check_name(name: &str) -> Result<(), Refusal> {
    checks::check_name("name", name)
}

pub(crate) fn check_url(url: &str, policy: TargetPolicy) -> Result<(), Refusal> {
    let target = Target::parse(url, policy);
    target.map(drop).map_err(|error| Refusal::bad("invalid_webhook_url", error.to_string()))
}

pub(crate) fn check_event_types(types: &[String]) -> Result<(), Refusal> {
    Patterns::parse(types).map(drop).map_err(|error| Refusal::bad("invalid_event_type", error.to_string()))
}

pub(crate) fn check_auth_header(header: &str) -> Result<(), Refusal> {
    let visible = header.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if visible && (1..=AUTH_HEADER_CHARS_MAX).contains(&header.len()) {
        return Ok(());
    }
    Err(invalid(format!("auth_header must have 1 to {AUTH_HEADER_CHARS_MAX} visible ASCII characters")))
}

pub(crate) fn check_labels(labels: &[String]) -> Result<(), Refusal> {
    if labels.len() > LABELS_MAX {
        return Err(invalid(format!("there may be at most {LABELS_MAX} target_labels")));
    }
    labels.iter().try_for_each(|label| checks::check_label(label))
}

pub(crate) fn check_retries(retries: i64) -> Result<(), Refusal> {
    let fits = (0..=i64::from(RETRIES_MAX)).contains(&retries);
    if fits { Ok(()) } else { Err(invalid(format!("max_retries must be 0 to {RETRIES_MAX}"))) }
}

pub(crate) fn check_timeout(seconds: i64) -> Result<(), Refusal> {
    let fits = (1..=TIMEOUT_SECONDS_MAX).contains(&seconds);
    if fits { Ok(()) } else { Err(invalid(format!("timeout_seconds must be 1 to {TIMEOUT_SECONDS_MAX}"))) }
}

pub(crate) fn read_secret(text: &str) -> Result<Secret, Refusal> {
    Secret::parse(text).map_err(|error| invalid(format!("signing_secret: {error}")))
}

fn invalid(message: String) -> Refusal {
    Refusal::bad("invalid_webhook", message)
}
