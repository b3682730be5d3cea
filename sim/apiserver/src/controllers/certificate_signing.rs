//! The controller that signs the certificates of clients, after their requests were approved.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::writes::{MANAGER, is_condition_true, replace_status};
use crate::admission::certificates::CLIENT_SIGNER;
use crate::object::fields::{add_duration, array_at, format_timestamp, string_at};
use crate::object::key::builtin_key;
use crate::state::certificate_signer::CertificateTerms;
use crate::state::server_state::ServerState;

const CONTROLLER: &str = "csrsigning-controller";
/// Longest validity of a certificate, which is that of a request without one.
const VALIDITY_MAX: SignedDuration = SignedDuration::from_hours(24 * 365);
/// Time by which the validity begins earlier, for clocks that are slow.
const BACKDATE: SignedDuration = SignedDuration::from_mins(5);
/// Validity from which the end is earlier, too.
const LONG_VALIDITY: SignedDuration = SignedDuration::from_hours(8);

/// Signs an approved request, or rejects one whose usages are not those of a client.
pub(crate) fn sign_certificate(state: &mut ServerState, now: Timestamp, name: &str) {
    let Some(signer) = state.signer.clone() else { return };
    let key = builtin_key("certificates.k8s.io", "CertificateSigningRequest", "certificatesigningrequests", None, name);
    let Some(live) = state.store.find_key(&key).cloned() else { return };
    let is_open = string_at(&live, "/status/certificate").is_empty()
        && is_condition_true(&live, "Approved")
        && !is_condition_true(&live, "Failed");
    if !is_open || string_at(&live, "/spec/signerName") != CLIENT_SIGNER {
        return;
    }
    let usages: Vec<&str> = array_at(&live, "/spec/usages").iter().filter_map(Value::as_str).collect();
    let mut updated_object = Value::clone(&live);
    if let Some(reason) = usage_error(&usages) {
        let mut conditions = array_at(&live, "/status/conditions").to_vec();
        conditions.push(json!({
            "type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": reason,
            "lastUpdateTime": format_timestamp(now), "lastTransitionTime": format_timestamp(now),
        }));
        updated_object["status"]["conditions"] = json!(conditions);
    } else {
        let request = STANDARD.decode(string_at(&live, "/spec/request")).unwrap_or_default();
        let seconds = live.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
        let terms = certificate_terms(now, seconds, &usages);
        // A request that cannot be signed waits, as in the real server.
        let Ok(certificate) = signer.sign(&String::from_utf8_lossy(&request), &terms) else { return };
        updated_object["status"]["certificate"] = json!(STANDARD.encode(certificate));
    }
    replace_status(state, now, (CONTROLLER, MANAGER), &key, &updated_object);
}

/// Returns the reason for which the usages are not those of a client.
fn usage_error(usages: &[&str]) -> Option<String> {
    let other = usages.iter().find(|usage| !["client auth", "digital signature", "key encipherment"].contains(usage));
    match other {
        Some(other) => Some(format!("invalid usage for client certificate: {other}")),
        None if usages.contains(&"client auth") => None,
        None => Some("missing required usage for client certificate: client auth".to_owned()),
    }
}

fn certificate_terms(now: Timestamp, seconds: Option<i64>, usages: &[&str]) -> CertificateTerms {
    let validity = seconds.map_or(VALIDITY_MAX, SignedDuration::from_secs).min(VALIDITY_MAX);
    let end = if validity < LONG_VALIDITY { validity } else { validity.checked_sub(BACKDATE).unwrap_or(validity) };
    CertificateTerms {
        not_before: now.checked_sub(BACKDATE).unwrap_or(now),
        not_after: add_duration(now, end),
        usages: usages.iter().map(|usage| (*usage).to_owned()).collect(),
    }
}
