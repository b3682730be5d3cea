//! Access reviews, token reviews, and tokens of service accounts.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::SignedDuration;
use serde_json::{Value, json};
use sindri_merge::{Writer, track_update};

use crate::auth::authenticator::TokenClaims;
use crate::auth::authorization_request::AuthorizationRequest;
use crate::auth::rbac::find_permission;
use crate::auth::rbac::rules_for;
use crate::auth::user::User;
use crate::http::error::ApiError;
use crate::http::response::Response;
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

const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// Default lifetime of a token in seconds.
const TOKEN_SECONDS: i64 = 3_600;

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
        "TokenReview" => object["status"] = token_status(state, string_at(&object, "/spec/token")),
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

fn token_status(state: &ServerState, token: &str) -> Value {
    match state.authenticator.tokens.0.get(token) {
        None => json!({"user": {}, "error": "invalid bearer token"}),
        Some(issued) => {
            let name = format!("system:serviceaccount:{}:{}", issued.namespace, issued.account);
            json!({"authenticated": true, "user": {"username": name, "uid": issued.uid}, "audiences": [ISSUER]})
        }
    }
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
    let seconds = body.pointer("/spec/expirationSeconds").and_then(Value::as_i64).unwrap_or(TOKEN_SECONDS);
    let mut object = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"});
    object["spec"] = json!({ "expirationSeconds": seconds });
    let mut object = track_fields(request, object, manager, "token")?;
    let fields = metadata(&mut object);
    fields.insert("name".to_owned(), json!(request.name));
    fields.insert("namespace".to_owned(), json!(namespace));
    fields.insert("uid".to_owned(), json!(uid));
    fields.insert("creationTimestamp".to_owned(), json!(request.timestamp()));
    let id = state.ids.uid();
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let header = part(json!({"alg": "ES256", "kid": "simulated"}));
    let claims =
        part(json!({"iss": ISSUER, "jti": id, "sub": format!("system:serviceaccount:{namespace}:{}", request.name)}));
    let token = format!("{header}.{claims}.{}", URL_SAFE_NO_PAD.encode(state.ids.uid()));
    let end = add_duration(request.now, SignedDuration::from_secs(seconds.clamp(0, 1 << 32)));
    object["spec"] = json!({"audiences": [ISSUER], "boundObjectRef": null, "expirationSeconds": seconds});
    object["status"] = json!({"token": token, "expirationTimestamp": format_timestamp(end)});
    state.authenticator.tokens.0.insert(token, TokenClaims { namespace, account: request.name.clone(), uid, id });
    Ok(Response::json(201, &object))
}
