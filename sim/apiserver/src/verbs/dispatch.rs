//! Dispatch of requests about objects to the verbs.

use http::Method;
use jiff::Timestamp;

use super::convert_by_webhook::convert_read_objects;
use super::create::create_from_request;
use super::delete::{delete_collection, delete_from_request};
use super::object_parts::is_part;
use super::patch::patch_from_request;
use super::read::{get_object, list_objects, open_watch_stream};
use super::resource_request::ResourceRequest;
use super::subresource::{handle_subresource, post_review};
use super::update::update_from_request;
use crate::auth::user::User;
use crate::discovery::groups;
use crate::encoding::protobuf;
use crate::http::error::ApiError;
use crate::http::media::{self, ResponseFormat};
use crate::http::request::{BODY_BYTES_MAX, Request};
use crate::http::response::Response;
use crate::http::route::Objects;
use crate::http::webhook_call::WebhookAnswers;
use crate::registry::resource::Target;
use crate::state::crd_serving::serve_established_crd;
use crate::state::server_state::ServerState;
use crate::verbs::patch;

/// Handles a request about objects.
pub(crate) fn handle_objects(
    state: &mut ServerState,
    now: Timestamp,
    request: &Request,
    user: User,
    path: Objects,
    answers: &WebhookAnswers,
) -> Result<Response, ApiError> {
    if request.method == Method::POST {
        serve_established_crd(state, &path);
    }
    if !state.registry.has_group(&path.group) {
        return Err(ApiError::NoSuchPath);
    }
    let is_custom = groups::is_custom(&path.group);
    let missing = || if is_custom { ApiError::NoSuchPath } else { ApiError::no_such_resource() };
    let target = state.registry.target(&path.group, &path.version, &path.plural).ok_or_else(missing)?;
    let misplaced = match (target.resource.namespaced, &path.namespace, &path.name) {
        (true, None, name) => name.is_some(),
        (true, Some(_), _) | (false, None, _) => false,
        (false, Some(_), _) => true,
    };
    if misplaced {
        return Err(missing());
    }
    let subresource = match path.subresource.as_deref() {
        None => "",
        Some(requested) => match target.version.subresources.keys().find(|served| *served == requested) {
            Some(_) => known_subresource(requested).ok_or_else(missing)?,
            None if target.resource.custom => {
                let name = path.name.unwrap_or_default();
                return Err(ApiError::not_found(&target.resource, &name));
            }
            None => return Err(missing()),
        },
    };
    let name = path.name.unwrap_or_default();
    let is_custom = target.resource.custom;
    // For custom resources the Accept header is checked before the name.
    if !is_custom && subresource.is_empty() {
        check_dots(&name)?;
    }
    check_verb(request, &target, &path.namespace, &name, subresource)?;
    let of_list = name.is_empty() && request.method == Method::GET;
    if is_custom && request.method == Method::PATCH && subresource != "scale" {
        // The content type is checked before the Accept header.
        patch::check_media(patch::media_of(request), is_custom)?;
    }
    let is_stream = request.method == Method::GET && request.flag("watch") && subresource != "status";
    let format = media::negotiate(request, media::RequestedContent { is_custom, of_list, is_stream });
    // The Accept header counts only for the errors of streams.
    let format = if is_stream_of_pod(subresource) { format.unwrap_or(ResponseFormat::PLAIN) } else { format? };
    if is_custom && subresource.is_empty() {
        check_dots(&name)?;
    }
    if request.body.len() > BODY_BYTES_MAX {
        return Err(ApiError::too_large(BODY_BYTES_MAX));
    }
    let translated = protobuf_body(request, &target);
    let request = translated.as_ref().unwrap_or(request);
    let namespace = path.namespace;
    let request = ResourceRequest {
        now,
        started: answers.start.map_or(now, |start| start.time),
        http: request,
        user,
        target,
        namespace,
        name,
        subresource,
        format,
        controller: None,
        answers,
    };
    request.check_metadata_form(of_list)?;
    convert_read_objects(&state.store, &request)?;
    let response = dispatch(state, &request)?;
    let response = if format.is_beta { response.in_beta() } else { response }.in_notation(format.notation);
    Ok(match &request.target.version.deprecation {
        Some(warning) => response.with_warning(warning),
        None => response,
    })
}

fn dispatch(state: &mut ServerState, request: &ResourceRequest<'_>) -> Result<Response, ApiError> {
    if !matches!(request.subresource, "" | "status") && !is_part(request.subresource) {
        return handle_subresource(state, request);
    }
    let watching = request.http.flag("watch");
    let result = match (&request.http.method, request.name.is_empty()) {
        (&Method::GET, _) if watching && !request.is_status() => return open_watch_stream(state, request),
        (&Method::GET, true) => return list_objects(&state.store, request),
        (&Method::GET, false) => return get_object(&state.store, request),
        (&Method::DELETE, false) => return delete_from_request(state, request),
        (&Method::DELETE, true) => return delete_collection(state, request),
        (&Method::POST, _) if request.target.resource.is_review() => return post_review(state, request),
        (&Method::POST, _) => create_from_request(state, request)?,
        (&Method::PUT, _) => update_from_request(state, request)?,
        (&Method::PATCH, _) => patch_from_request(state, request)?,
        _ => return Err(ApiError::method_not_allowed()),
    };
    Ok(request.response_to_write(&result))
}

fn check_dots(name: &str) -> Result<(), ApiError> {
    if matches!(name, "." | "..") {
        return Err(ApiError::bad_request(format!("Name parameter invalid: {name:?}: may not be '{name}'")));
    }
    Ok(())
}

/// Returns the request with its Protobuf body converted to JSON; a body that cannot be decoded stays and is rejected later.
/// Custom resources have no Protobuf encoding, but delete options have.
fn protobuf_body(request: &Request, target: &Target) -> Option<Request> {
    let has_message = !target.resource.custom || request.method == Method::DELETE;
    if !has_message || !protobuf::is_media(&request.headers.content_type) {
        return None;
    }
    let expected = if request.method == Method::DELETE {
        ("v1".to_owned(), "DeleteOptions")
    } else {
        (target.api_version(), target.resource.kind.as_str())
    };
    let object = protobuf::decode_as(&request.body, (&expected.0, expected.1)).ok()?;
    let mut changed = request.clone();
    changed.body = object.to_string().into();
    "application/json".clone_into(&mut changed.headers.content_type);
    Some(changed)
}

/// Returns a supported subresource. `proxy` is not supported.
fn known_subresource(name: &str) -> Option<&'static str> {
    const SUPPORTED: [&str; 13] = [
        "approval",
        "attach",
        "binding",
        "ephemeralcontainers",
        "eviction",
        "exec",
        "finalize",
        "log",
        "portforward",
        "resize",
        "scale",
        "status",
        "token",
    ];
    SUPPORTED.into_iter().find(|known| *known == name)
}

/// True for a subresource whose requests become streams.
fn is_stream_of_pod(subresource: &str) -> bool {
    matches!(subresource, "attach" | "exec" | "portforward")
}

/// Checks that discovery lists the verb of a request.
fn check_verb(
    request: &Request,
    target: &Target,
    namespace: &Option<String>,
    name: &str,
    subresource: &str,
) -> Result<(), ApiError> {
    let verb = match (&request.method, name.is_empty()) {
        (&Method::GET, true) => "list",
        (&Method::GET, false) => "get",
        (&Method::POST, true) if namespace.is_some() || !target.resource.namespaced => "create",
        (&Method::POST, false) if !subresource.is_empty() => "create",
        (&Method::PUT, false) => "update",
        (&Method::PATCH, false) => "patch",
        (&Method::DELETE, true) if namespace.is_some() || !target.resource.namespaced => "deletecollection",
        (&Method::DELETE, false) => "delete",
        _ => "",
    };
    let verbs = target.version.subresources.get(subresource).unwrap_or(&target.resource.verbs);
    if verbs.iter().any(|served| served == verb) {
        return Ok(());
    }
    Err(if target.resource.custom && !verb.is_empty() {
        ApiError::custom_method_not_allowed(&target.resource, verb)
    } else {
        ApiError::method_not_allowed()
    })
}
