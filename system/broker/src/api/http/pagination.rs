//! Pagination: the query parameters of a list and the link to its next page.
//!
//! The body is a plain array. A page that is full, by the number or by the size of its results, has a `Link` header to
//! the next one. The link is relative and has no path,
//! because a proxy may serve the broker under another path.

use std::fmt::Display;

use axum::Json;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::LINK;
use http::request::Parts;
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::describe::{DescribeRequest, DescribeResponse, OK, Operation, json_content, parameter};
use super::error_response::ErrorResponse;
use super::extract::QueryParams;
use crate::store::Page;

/// Query parameters that select a page.
#[derive(Deserialize)]
struct PageParams {
    limit: Option<i64>,
    after: Option<Uuid>,
}

/// The requested page of a list, with the default and the maximum of its limit.
pub(crate) struct ListParams<const DEFAULT: i64 = { Page::LIMIT_MAX }, const MAX: i64 = { Page::LIMIT_MAX }> {
    page: Page,
    /// The other parameters of the query, as they were sent.
    other_params: String,
}

impl<S: Send + Sync, const DEFAULT: i64, const MAX: i64> FromRequestParts<S> for ListParams<DEFAULT, MAX> {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        let QueryParams(params) = QueryParams::<PageParams>::from_request_parts(parts, state).await?;
        let limit = params.limit.unwrap_or(DEFAULT);
        if limit < 1 {
            return Err(ErrorResponse::bad_request("invalid_query", "limit must be at least 1"));
        }
        let after = params.after.map(|after| after.to_string());
        let other_params = remove_page_params(parts.uri.query().unwrap_or_default());
        Ok(Self { page: Page { after, limit: limit.min(MAX) }, other_params })
    }
}

impl<const DEFAULT: i64, const MAX: i64> DescribeRequest for ListParams<DEFAULT, MAX> {
    fn describe(operation: &mut Operation, _schemas: &mut SchemaGenerator) {
        let limit = json!({"type": "integer", "minimum": 1, "default": DEFAULT});
        let after = json!({"type": "string", "format": "uuid"});
        let description = format!("Maximum number of results; at most {MAX}.");
        operation.parameters.push(parameter("query", "limit", &description, limit));
        operation.parameters.push(parameter("query", "after", "Id of the last result of the previous page.", after));
        operation.errors.insert(400);
    }
}

fn remove_page_params(query: &str) -> String {
    let is_other =
        |pair: &&str| !pair.is_empty() && !["limit", "after"].contains(&pair.split('=').next().unwrap_or(""));
    query.split('&').filter(is_other).map(|pair| format!("{pair}&")).collect()
}

impl<const DEFAULT: i64, const MAX: i64> ListParams<DEFAULT, MAX> {
    /// Returns the page for the store.
    pub(crate) fn page(&self) -> Page {
        self.page.clone()
    }

    /// Returns the response with the results of the store.
    pub(crate) fn respond<T, I: Display>(&self, items: Vec<T>, id: impl Fn(&T) -> I) -> ListResponse<Vec<T>> {
        let is_full = i64::try_from(items.len()).is_ok_and(|length| length >= self.page.limit);
        let last = items.last().filter(|_| is_full).map(id);
        ListResponse { next_link: last.and_then(|last| self.next_link(&last)), body: items, text_bytes: 0 }
    }

    /// Returns the response with results that the store limits by the size of their texts too.
    pub(crate) fn respond_sized<T, I: Display>(
        &self,
        items: Vec<T>,
        id: impl Fn(&T) -> I,
        text_bytes: impl Fn(&T) -> usize,
    ) -> ListResponse<Vec<T>> {
        let bytes: usize = items.iter().map(text_bytes).sum();
        if i64::try_from(bytes).is_ok_and(|bytes| bytes < Page::TEXT_BYTES_MAX) {
            return ListResponse { text_bytes: bytes, ..self.respond(items, id) };
        }
        let next_link = items.last().map(id).and_then(|last| self.next_link(&last));
        ListResponse { next_link, body: items, text_bytes: bytes }
    }

    /// Returns the link to the page after this result, if there is one.
    pub(crate) fn link_after(&self, last: Option<impl Display>) -> Option<HeaderValue> {
        last.and_then(|last| self.next_link(&last))
    }

    fn next_link(&self, last: &dyn Display) -> Option<HeaderValue> {
        let link = format!("<?{}limit={}&after={last}>; rel=\"next\"", self.other_params, self.page.limit);
        // There is no link if the query is not valid in a header.
        HeaderValue::try_from(link).ok()
    }
}

/// One page of a list.
pub(crate) struct ListResponse<B> {
    pub body: B,
    pub next_link: Option<HeaderValue>,
    /// Size of the texts in it; 0 if they are short.
    pub text_bytes: usize,
}

impl<B> ListResponse<B> {
    /// Returns the same page with another body.
    pub(crate) fn map<C>(self, change: impl FnOnce(B) -> C) -> ListResponse<C> {
        ListResponse { body: change(self.body), next_link: self.next_link, text_bytes: self.text_bytes }
    }
}

impl<B: Serialize> IntoResponse for ListResponse<B> {
    fn into_response(self) -> Response {
        let mut response = Json(self.body).into_response();
        if let Some(next_link) = self.next_link {
            response.headers_mut().insert(LINK, next_link);
        }
        response
    }
}

impl<B: JsonSchema> DescribeResponse for ListResponse<B> {
    fn describe(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        let description = "Link to the next page (rel=\"next\") if this one is full, relative to the request.";
        let mut response = json_content::<B>(OK, schemas);
        response["headers"] = json!({"Link": {"description": description, "schema": {"type": "string"}}});
        operation.responses.insert(200, response);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(query: &str, limit: i64) -> ListParams {
        ListParams { page: Page { after: None, limit }, other_params: remove_page_params(query) }
    }

    #[test]
    fn a_full_page_links_to_the_next_and_keeps_the_other_parameters() {
        let page = params("limit=2&pak_id=a%20b&after=x&&mode=full", 2).respond(vec![7, 8], |item| *item);
        assert_eq!(page.next_link.unwrap(), "<?pak_id=a%20b&mode=full&limit=2&after=8>; rel=\"next\"");
        assert_eq!(params("", 1).respond(vec![1], |item| *item).next_link.unwrap(), "<?limit=1&after=1>; rel=\"next\"");
    }

    #[test]
    fn a_page_that_is_full_by_its_size_links_to_the_next() {
        let (half, limit) = (Page::TEXT_BYTES_MAX as usize / 2, 100);
        let sized = |items| params("", limit).respond_sized(items, |item| *item, |_| half).next_link;
        assert!(sized(vec![7]).is_none());
        assert_eq!(sized(vec![7, 8]).unwrap(), "<?limit=100&after=8>; rel=\"next\"");
    }

    #[test]
    fn a_page_that_is_not_full_has_no_link() {
        assert!(params("limit=3", 3).respond(vec![7, 8], |item| *item).next_link.is_none());
        assert!(params("limit=3", 3).respond(Vec::<u8>::new(), |item| *item).next_link.is_none());
    }
}
