//! Get, list and watch.

use std::collections::btree_map;
use std::sync::Arc;

use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD};
use base64::{DecodeError, Engine};
use serde_json::{Value, json};

use super::resource_request::ResourceRequest;
use crate::encoding::yaml;
use crate::http::error::ApiError;
use crate::http::response::Response;
use crate::object::stored::Stored;
use crate::printing::render;
use crate::registry::conversion;
use crate::state::selector::Selector;
use crate::state::server_state::ServerState;
use crate::state::watch::{Scope, Watch};
use crate::storage::store::{Collection, Entry, NamespacedName, Store, namespace_range};

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// Version of continue tokens.
const TOKEN_VERSION: &str = "meta.k8s.io/v1";
/// Base64 as Go decodes it: trailing bits are ignored.
const LENIENT: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// Returns Go's error for invalid base64.
fn base64_error(error: &DecodeError) -> String {
    let position = match error {
        DecodeError::InvalidByte(position, _) | DecodeError::InvalidLength(position) => *position,
        DecodeError::InvalidLastSymbol { offset, .. } => *offset,
        DecodeError::InvalidPadding => 0,
    };
    format!("illegal base64 data at input byte {position}")
}

/// Position of a paged list: its revision, and the key of the last returned object.
struct Page {
    revision: u64,
    after: (String, String),
}

impl Page {
    fn read(token: &str) -> Result<Self, ApiError> {
        let refuse = |reason: &str| {
            ApiError::bad_request(format!("invalid continue token: continue key is not valid: {reason}"))
        };
        let decoded = LENIENT.decode(token).map_err(|error| refuse(&base64_error(&error)))?;
        let token = yaml::read_json(&decoded).map_err(|error| refuse(&error))?;
        let version = token.get("v").and_then(Value::as_str).unwrap_or_default();
        if version != TOKEN_VERSION {
            return Err(refuse(&format!("server does not recognize this encoded version {version}")));
        }
        let text = |name: &str| token.get(name).and_then(Value::as_str).map(str::to_owned);
        let page = || Some(Self { revision: token.get("rv")?.as_u64()?, after: (text("namespace")?, text("name")?) });
        page().ok_or_else(|| refuse("it has no place"))
    }

    fn token(&self) -> String {
        let token = json!({"v": TOKEN_VERSION, "rv": self.revision, "namespace": self.after.0, "name": self.after.1});
        URL_SAFE_NO_PAD.encode(token.to_string())
    }
}

pub(crate) fn get_object(store: &Store, request: &ResourceRequest<'_>) -> Result<Response, ApiError> {
    if let Some(text) = request.http.parameter("resourceVersion") {
        let requested = text.parse::<u64>().map_err(|_| ApiError::unknown(invalid_revision(text)))?;
        if requested > store.revision() {
            return Err(ApiError::version_too_large(requested, store.revision()));
        }
    }
    let object = find_live(store, request).ok_or_else(|| request.not_found())?;
    Ok(Response::from_json(200, render::object(&request.target, request.format.representation, request.now, object)))
}

/// Returns the stored object of a request.
pub(crate) fn find_live<'a>(store: &'a Store, request: &ResourceRequest<'_>) -> Option<&'a Arc<Stored>> {
    let resource = &request.target.resource;
    let home = conversion::storage_group(resource);
    let found = store.get(home, &resource.plural, request.namespace.as_deref(), &request.name);
    found.map(|entry| &entry.object)
}

pub(crate) fn list_objects(store: &Store, request: &ResourceRequest<'_>) -> Result<Response, ApiError> {
    request.check_list_options(false)?;
    let scope = scope(request)?;
    let resource = &request.target.resource;
    let current = store.revision();
    let version = request.http.parameter("resourceVersion");
    let limit: Option<usize> =
        request.http.parameter("limit").and_then(|limit| limit.parse().ok()).filter(|limit| *limit > 0);
    let page = match request.http.parameter("continue") {
        None => None,
        Some(_) if version.is_some_and(|version| version != "0") => {
            let message = "specifying resource version is not allowed when using continue";
            return Err(ApiError::bad_request(message));
        }
        Some(token) => Some(Page::read(token)?),
    };
    // With resourceVersion 0 the real server responds from its cache, which has no pages.
    let limit = limit.filter(|_| page.is_some() || version != Some("0"));
    let revision = match &page {
        Some(page) if page.revision < store.compacted() => {
            let fresh = Page { revision: current, after: page.after.clone() };
            return Err(ApiError::expired_with_continue(CONTINUE_EXPIRED, fresh.token()));
        }
        Some(page) => page.revision,
        None => revision_to_list(store, request)?,
    };
    let pinned = (revision != current)
        .then(|| store.collection_at(conversion::storage_group(resource), &resource.plural, revision));
    let collection =
        pinned.as_ref().or_else(|| store.collection(conversion::storage_group(resource), &resource.plural));
    let here = collection
        .into_iter()
        .flat_map(|collection| in_scope(collection, scope.namespace.as_deref()))
        .filter(|(place, _)| page.as_ref().is_none_or(|page| **place > page.after));
    let mut last_place = None;
    let mut selected: Vec<(&NamespacedName, &Entry)> = here
        .inspect(|(place, _)| last_place = Some(*place))
        .filter(|(_, entry)| scope.selector.matches(&entry.object))
        .collect();
    let mut metadata = json!({ "resourceVersion": revision.to_string() });
    // A full page has a continue token if any object follows, whether or not it is selected.
    let full = limit
        .filter(|_| !scope.selector.selects_one())
        .and_then(|limit| Some((limit, selected.get(limit.checked_sub(1)?)?.0)));
    if let Some((limit, last)) = full.filter(|(_, last)| last_place != Some(*last)) {
        let (remaining, after) = (selected.len() - limit, last.clone());
        selected.truncate(limit);
        metadata["continue"] = json!(Page { revision, after }.token());
        if scope.selector.is_empty() {
            metadata["remainingItemCount"] = json!(remaining);
        }
    }
    let objects: Vec<Arc<Stored>> = selected.into_iter().map(|(_, entry)| entry.object.clone()).collect();
    Ok(Response::from_json(
        200,
        render::list(&request.target, request.format.representation, request.now, &objects, metadata),
    ))
}

/// Returns the revision of a list: the newest, unless the request asks for an exact one.
fn revision_to_list(store: &Store, request: &ResourceRequest<'_>) -> Result<u64, ApiError> {
    let current = store.revision();
    let Some(text) = request.http.parameter("resourceVersion") else {
        return Ok(current);
    };
    let requested: u64 = text
        .parse()
        .map_err(|_| ApiError::bad_request(format!("invalid resource version: {}", invalid_revision(text))))?;
    if requested > current {
        return Err(ApiError::version_too_large(requested, current));
    }
    // Without resourceVersionMatch, a limited list is exact, because all pages must have the same revision.
    let rule = request.http.parameter("resourceVersionMatch");
    let limited = request.http.parameter("limit").is_some_and(|limit| limit != "0");
    if !(rule == Some("Exact") || rule.is_none() && limited && requested > 0) {
        return Ok(current);
    }
    if requested < store.compacted() {
        let message = format!("The provided resource version is too old: {requested}");
        return Err(ApiError::expired(message));
    }
    Ok(requested)
}

pub(crate) fn open_watch_stream(state: &mut ServerState, request: &ResourceRequest<'_>) -> Result<Response, ApiError> {
    request.check_list_options(true)?;
    let scope = scope(request)?;
    let current = state.store.revision();
    let from = match request.http.parameter("resourceVersion") {
        None | Some("0") => None,
        Some(text) => Some(text.parse::<u64>().map_err(|_| ApiError::unknown(invalid_revision(text)))?),
    };
    let requested = request.http.parameter("sendInitialEvents");
    let initial = request.http.flag("sendInitialEvents");
    let cursor = if initial { current } else { from.unwrap_or(current) };
    let bookmarks = request.http.flag("allowWatchBookmarks");
    // A watch from any revision gets a bookmark after its initial events.
    let marks_the_end = initial && bookmarks
        || bookmarks && requested.is_none() && request.http.parameter("resourceVersion") == Some("0");
    let timeout = request
        .http
        .parameter("timeoutSeconds")
        .and_then(|seconds| seconds.parse().ok())
        .filter(|seconds| *seconds > 0);
    let resource = &request.target.resource;
    let mut watch = Watch::new(scope.clone(), request.now, cursor, bookmarks, timeout);
    if initial || from.is_none() && requested.is_none() {
        let collection = state.store.collection(conversion::storage_group(resource), &resource.plural);
        let selected = collection.into_iter().flat_map(|collection| collection.values());
        let selected = selected.filter(|entry| scope.selects(entry.key.namespace.as_deref(), &entry.object));
        let objects: Vec<Arc<Stored>> = selected.map(|entry| entry.object.clone()).collect();
        watch.start_with(request.now, &objects);
    }
    if marks_the_end {
        watch.end_initial_events();
    }
    Ok(Response::Watch(state.watches.open(watch)))
}

/// Returns the objects of a collection in a namespace, or all of them.
fn in_scope<'a>(collection: &'a Collection, namespace: Option<&str>) -> btree_map::Range<'a, NamespacedName, Entry> {
    match namespace {
        Some(namespace) => collection.range(namespace_range(namespace)),
        None => collection.range::<NamespacedName, _>(..),
    }
}

fn invalid_revision(text: &str) -> String {
    format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax")
}

/// Reads the objects and the format of a list or a watch.
pub(super) fn scope(request: &ResourceRequest<'_>) -> Result<Scope, ApiError> {
    let parameter = |name: &str| request.http.parameter(name).unwrap_or_default();
    Ok(Scope {
        target: request.target.clone(),
        namespace: request.namespace.clone(),
        name: (!request.name.is_empty()).then(|| request.name.clone()),
        selector: Selector::parse(&request.target.resource, parameter("labelSelector"), parameter("fieldSelector"))?,
        format: request.format,
    })
}
