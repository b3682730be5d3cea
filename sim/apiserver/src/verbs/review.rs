//! Access reviews, token reviews, and tokens of service accounts.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sindri_merge::{Writer, track_update};

use crate::auth::authenticator::{ISSUER, TokenClaims};
use crate::auth::authorization_request::AuthorizationRequest;
use crate::auth::rbac::find_permission;
use crate::auth::rbac::rules_for;
use crate::auth::user::User;
use crate::http::error::ApiError;
use crate::http::response::Response;
use crate::object::field_error::FieldError;
use crate::object::fields::add_duration;
use crate::object::fields::array_at;
use crate::object::fields::format_timestamp;
use crate::object::fields::metadata;
use crate::object::fields::string_at;
use crate::registry::types::encode;
use crate::registry::types::types;
use crate::state::server_state::ServerState;
use crate::storage::store::Store;
use crate::verbs::read::find_live;
use crate::verbs::resource_request::ResourceRequest;

/// Default lifetime of a token in seconds.
const TOKEN_SECONDS: i64 = 3_600;
/// Smallest and largest lifetime of a token in seconds.
const TOKEN_SECONDS_MIN: i64 = 600;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;

/// Responds to a review, which is never stored.
pub(crate) fn evaluate_review(
    state: &mut ServerState,
    request: &ResourceRequest<'_>,
    body: Value,
    manager: &str,
) -> Result<Response, ApiError> {
    let kind = request.target.resource.kind.as_str();
    let mut object = body;
    object["apiVersion"] = json!(request.target.api_version());
    object["kind"] = json!(kind);
    if !matches!(kind, "SelfSubjectReview" | "SelfSubjectRulesReview") {
        object = track_fields(request, object, manager, "")?;
    }
    metadata(&mut object);
    match kind {
        "SelfSubjectReview" => {
            metadata(&mut object).insert("creationTimestamp".to_owned(), json!(request.timestamp()));
            object["status"] = json!({"userInfo": request.user.to_value()});
        }
        "SelfSubjectAccessReview" => object["status"] = access_verdict(&state.store, &request.user, &object),
        "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            let groups =
                array_at(&object, "/spec/groups").iter().filter_map(Value::as_str).map(str::to_owned).collect();
            let user = User { name: string_at(&object, "/spec/user").to_owned(), groups, ..User::default() };
            object["status"] = access_verdict(&state.store, &user, &object);
        }
        "SelfSubjectRulesReview" => {
            object["status"] = rules_status(&state.store, &request.user, string_at(&object, "/spec/namespace"));
            object["spec"] = json!({});
        }
        "TokenReview" => object["status"] = token_status(state, request.now, &object),
        _ => return Err(ApiError::method_not_allowed()),
    }
    Ok(Response::json(201, &object))
}

fn track_fields(
    request: &ResourceRequest<'_>,
    object: Value,
    manager: &str,
    part: &'static str,
) -> Result<Value, ApiError> {
    let typed =
        types().find_kind(&request.target.resource.group, &request.target.version.name, string_at(&object, "/kind"));
    let token = types().find_kind("authentication.k8s.io", "v1", string_at(&object, "/kind"));
    let Some(typed) = typed.or(token) else { return Ok(object) };
    let Some(shape) = types().shape(&typed.name) else { return Ok(object) };
    let (api_version, now, blank) =
        (string_at(&object, "/apiVersion").to_owned(), request.timestamp(), encode::empty_object(typed));
    let writer = Writer { manager, api_version: &api_version, subresource: part, now: &now, blank: &blank };
    track_update(shape, None, &object, &writer).map_err(|error| ApiError::bad_request(error.to_string()))
}

fn access_verdict(store: &Store, user: &User, review: &Value) -> Value {
    let attribute = |name: &str| string_at(review, &format!("/spec/resourceAttributes/{name}")).to_owned();
    let path = string_at(review, "/spec/nonResourceAttributes/path");
    let request = if path.is_empty() {
        AuthorizationRequest {
            verb: attribute("verb"),
            group: attribute("group"),
            resource: attribute("resource"),
            subresource: attribute("subresource"),
            namespace: attribute("namespace"),
            name: attribute("name"),
            path: None,
        }
    } else {
        let verb = string_at(review, "/spec/nonResourceAttributes/verb").to_owned();
        AuthorizationRequest { verb, path: Some(path.to_owned()), ..AuthorizationRequest::default() }
    };
    match find_permission(store, user, &request) {
        None => json!({"allowed": false}),
        Some(reason) if reason.is_empty() => json!({"allowed": true}),
        Some(reason) => json!({"allowed": true, "reason": reason}),
    }
}

fn rules_status(store: &Store, user: &User, namespace: &str) -> Value {
    let (mut resources, mut paths): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
    for rule in rules_for(store, user, namespace) {
        if rule.get("nonResourceURLs").is_some() { paths.push(rule) } else { resources.push(rule) }
    }
    json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false})
}

fn token_status(state: &ServerState, now: Timestamp, review: &Value) -> Value {
    let audiences: Vec<&str> = array_at(review, "/spec/audiences").iter().filter_map(Value::as_str).collect();
    let token = string_at(review, "/spec/token");
    match state.authenticator.authenticate_token(&state.store, now, token, &audiences) {
        None => json!({"user": {}, "error": "invalid bearer token"}),
        Some((user, audiences)) => json!({"authenticated": true, "user": user.to_value(), "audiences": audiences}),
    }
}

/// Returns the lifetime of a requested token in seconds.
fn token_seconds(body: &Value) -> Result<i64, ApiError> {
    let seconds = body.pointer("/spec/expirationSeconds").and_then(Value::as_i64).unwrap_or(TOKEN_SECONDS);
    let detail = match seconds {
        ..TOKEN_SECONDS_MIN => "may not specify a duration less than 10 minutes",
        TOKEN_SECONDS_MIN..=TOKEN_SECONDS_MAX => return Ok(seconds),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let error = FieldError::invalid("spec.expirationSeconds", &json!(seconds), detail);
    Err(ApiError::invalid_kind("authentication.k8s.io", "TokenRequest", "", &[error]))
}

/// Issues a token for a service account.
pub(crate) fn issue_token(
    state: &mut ServerState,
    request: &ResourceRequest<'_>,
    body: Value,
    manager: &str,
) -> Result<Response, ApiError> {
    let live = find_live(&state.store, request).cloned().ok_or_else(|| request.not_found())?;
    let (uid, namespace) =
        (crate::object::fields::uid(&live).to_owned(), request.namespace.clone().unwrap_or_default());
    let seconds = token_seconds(&body)?;
    let wanted: Vec<String> =
        array_at(&body, "/spec/audiences").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let mut object = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"});
    object["spec"] = json!({ "expirationSeconds": seconds });
    if !wanted.is_empty() {
        object["spec"]["audiences"] = json!(wanted);
    }
    let mut object = track_fields(request, object, manager, "token")?;
    let fields = metadata(&mut object);
    fields.insert("name".to_owned(), json!(request.name));
    fields.insert("namespace".to_owned(), json!(namespace));
    fields.insert("uid".to_owned(), json!(uid));
    fields.insert("creationTimestamp".to_owned(), json!(request.timestamp()));
    let id = state.ids.uid();
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let header = part(json!({"alg": "ES256", "kid": "simulated"}));
    let audiences = if wanted.is_empty() { vec![ISSUER.to_owned()] } else { wanted };
    let (issued_at, expires_at) = (request.now, add_duration(request.now, SignedDuration::from_secs(seconds)));
    let claims = part(json!({
        "iss": ISSUER, "aud": audiences, "jti": id, "sub": format!("system:serviceaccount:{namespace}:{}", request.name),
        "iat": issued_at.as_second(), "nbf": issued_at.as_second(), "exp": expires_at.as_second(),
        "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": request.name, "uid": uid}},
    }));
    let token = format!("{header}.{claims}.{}", URL_SAFE_NO_PAD.encode(state.ids.uid()));
    let bound_to = body.pointer("/spec/boundObjectRef").cloned().unwrap_or_default();
    object["spec"] = json!({"audiences": audiences, "boundObjectRef": bound_to, "expirationSeconds": seconds});
    object["status"] = json!({"token": token, "expirationTimestamp": format_timestamp(expires_at)});
    let issued = TokenClaims { namespace, account: request.name.clone(), uid, id, audiences, expires_at };
    let tokens = &mut state.authenticator.tokens.0;
    tokens.retain(|_, other| other.expires_at > request.now);
    tokens.insert(token, issued);
    Ok(Response::json(201, &object))
}
