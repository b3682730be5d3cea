//! Requests for documents about the server itself.

use bytes::Bytes;
use http::Method;
use serde_json::Value;

use super::{groups, health, metrics, openapi};
use crate::http::error::ApiError;
use crate::http::media;
use crate::http::request::Request;
use crate::http::response::Response;
use crate::http::route::Route;
use crate::registry::served::Registry;
use crate::storage::store::Store;

const JSON: &str = "application/json";

/// Responds to a request that is not about objects. All of these are read-only.
pub(crate) fn respond(
    store: &Store,
    registry: &Registry,
    request: &Request,
    route: &Route,
) -> Result<Response, ApiError> {
    let notation = media::plain_notation(request);
    let found = |document: Option<Value>| {
        let respond = |document: Value| Response::json(200, &document).in_notation(notation);
        document.map(respond).ok_or(ApiError::NoSuchPath)
    };
    // Documents that have only one media type.
    let only = |document: Value, media: &str| match media::rejects_media(request, media) {
        true => Err(ApiError::not_acceptable(&[media])),
        false => Ok(Response::json(200, &document).with_header("content-type", media.to_owned())),
    };
    match route {
        Route::Nowhere => return Err(ApiError::NoSuchPath),
        Route::NoResource => return Err(ApiError::no_such_resource()),
        _ if request.method != Method::GET => return Err(ApiError::method_not_allowed()),
        _ => {}
    }
    let aggregated = media::aggregated_discovery(request);
    let tag = &request.headers.if_none_match;
    match route {
        Route::Version => match media::rejects_media(request, JSON) {
            true => Err(ApiError::not_acceptable(&[JSON])),
            false => Ok(Response::indented(200, &groups::version())),
        },
        Route::Health { endpoint, check } => health::respond(request, endpoint, check),
        Route::Root => Ok(Response::indented(200, &groups::paths(registry))),
        Route::Keys => only(groups::keys(), "application/jwk-set+json"),
        Route::Issuer => only(groups::issuer(), JSON),
        Route::Core | Route::Groups => {
            let is_core = *route == Route::Core;
            match aggregated {
                Some(notation) => Ok(groups::tagged(&groups::aggregated(registry, is_core), notation, tag)),
                None if is_core => found(Some(groups::core())),
                None => found(Some(groups::groups(registry))),
            }
        }
        Route::Group(group) => found(groups::group(registry, group)),
        Route::Resources { group, version } => match groups::resources(registry, group, version) {
            None if registry.has_group(group) => Err(ApiError::no_such_resource()),
            document => found(document),
        },
        Route::OpenApi2 => Ok(openapi::version_2(registry, request)),
        Route::OpenApi3Index => Ok(Response::json(200, &openapi::index(registry))
            .with_header("content-type", "text/plain; charset=utf-8".to_owned())),
        Route::OpenApi3 { group, version } => match openapi::document(registry, group, version) {
            Some(document) => Ok(openapi::respond(document.into(), tag)),
            None => Ok(Response::Full { status: 404, headers: Vec::new(), body: Bytes::new() }),
        },
        Route::Metrics => Ok(metrics::respond(store)),
        Route::Objects(_) | Route::Watch(_) | Route::NoResource | Route::Nowhere => Err(ApiError::NoSuchPath),
    }
}
