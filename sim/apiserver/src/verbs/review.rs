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
use crate::object::fields::later;
use crate::object::fields::list;
use crate::object::fields::metadata;
use crate::object::fields::stamp;
use crate::object::fields::text;
use crate::registry::types::encode;
use crate::registry::types::types;
use crate::state::server_state::ServerState;
use crate::storage::store::Store;
use crate::verbs::call::Call;
use crate::verbs::read::find_live;

const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// Default lifetime of a token in seconds.
const TOKEN_SECONDS: i64 = 3_600;

/// Responds to a review, which is never stored.
pub(crate) fn evaluate_review(
    state: &mut ServerState,
    call: &Call<'_>,
    asked: Value,
    manager: &str,
) -> Result<Response, ApiError> {
    let kind = call.target.resource.kind.as_str();
    let mut object = asked;
    object["apiVersion"] = json!(call.target.api_version());
    object["kind"] = json!(kind);
    if !matches!(kind, "SelfSubjectReview" | "SelfSubjectRulesReview") {
        object = track_fields(call, object, manager, "")?;
    }
    metadata(&mut object);
    match kind {
        "SelfSubjectReview" => {
            metadata(&mut object).insert("creationTimestamp".to_owned(), json!(call.timestamp()));
            object["status"] = json!({"userInfo": call.user.to_value()});
        }
        "SelfSubjectAccessReview" => object["status"] = access_verdict(&state.store, &call.user, &object),
        "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            let groups = list(&object, "/spec/groups").iter().filter_map(Value::as_str).map(str::to_owned).collect();
            let user = User { name: text(&object, "/spec/user").to_owned(), groups, ..User::default() };
            object["status"] = access_verdict(&state.store, &user, &object);
        }
        "SelfSubjectRulesReview" => {
            object["status"] = rules_status(&state.store, &call.user, text(&object, "/spec/namespace"));
            object["spec"] = json!({});
        }
        "TokenReview" => object["status"] = token_status(state, text(&object, "/spec/token")),
        _ => return Err(ApiError::method_not_allowed()),
    }
    Ok(Response::json(201, &object))
}

fn track_fields(call: &Call<'_>, object: Value, manager: &str, part: &'static str) -> Result<Value, ApiError> {
    let typed = types().find_kind(&call.target.resource.group, &call.target.version.name, text(&object, "/kind"));
    let token = types().find_kind("authentication.k8s.io", "v1", text(&object, "/kind"));
    let Some(typed) = typed.or(token) else { return Ok(object) };
    let Some(shape) = types().shape(&typed.name) else { return Ok(object) };
    let (api_version, now, blank) =
        (text(&object, "/apiVersion").to_owned(), call.timestamp(), encode::empty_object(typed));
    let writer = Writer { manager, api_version: &api_version, subresource: part, now: &now, blank: &blank };
    track_update(shape, None, &object, &writer).map_err(|error| ApiError::bad_request(error.to_string()))
}

fn access_verdict(store: &Store, user: &User, review: &Value) -> Value {
    let attribute = |name: &str| text(review, &format!("/spec/resourceAttributes/{name}")).to_owned();
    let path = text(review, "/spec/nonResourceAttributes/path");
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
        let verb = text(review, "/spec/nonResourceAttributes/verb").to_owned();
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
    call: &Call<'_>,
    asked: Value,
    manager: &str,
) -> Result<Response, ApiError> {
    let live = find_live(&state.store, call).cloned().ok_or_else(|| call.not_found())?;
    let (uid, namespace) = (crate::object::fields::uid(&live).to_owned(), call.namespace.clone().unwrap_or_default());
    let seconds = asked.pointer("/spec/expirationSeconds").and_then(Value::as_i64).unwrap_or(TOKEN_SECONDS);
    let mut object = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"});
    object["spec"] = json!({ "expirationSeconds": seconds });
    let mut object = track_fields(call, object, manager, "token")?;
    let fields = metadata(&mut object);
    fields.insert("name".to_owned(), json!(call.name));
    fields.insert("namespace".to_owned(), json!(namespace));
    fields.insert("uid".to_owned(), json!(uid));
    fields.insert("creationTimestamp".to_owned(), json!(call.timestamp()));
    let id = state.ids.uid();
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let header = part(json!({"alg": "ES256", "kid": "simulated"}));
    let claims =
        part(json!({"iss": ISSUER, "jti": id, "sub": format!("system:serviceaccount:{namespace}:{}", call.name)}));
    let token = format!("{header}.{claims}.{}", URL_SAFE_NO_PAD.encode(state.ids.uid()));
    let end = later(call.now, SignedDuration::from_secs(seconds.clamp(0, 1 << 32)));
    object["spec"] = json!({"audiences": [ISSUER], "boundObjectRef": null, "expirationSeconds": seconds});
    object["status"] = json!({"token": token, "expirationTimestamp": stamp(end)});
    state.authenticator.tokens.0.insert(token, TokenClaims { namespace, account: call.name.clone(), uid, id });
    Ok(Response::json(201, &object))
}
