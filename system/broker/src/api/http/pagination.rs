//! Lists in parts: what was asked for, and where the next part is.
//!
//! The body is a plain array. When it is as long as it may be there may be more, and a `Link` header leads there. It
//! is relative and has no path: a proxy may serve the broker under another one.

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

use super::describe::{Answer, Operation, Part, json_content, parameter};
use super::error_response::Refusal;
use super::extract::Asked;
use crate::store::Page;

#[derive(Deserialize)]
struct Window {
    limit: Option<i64>,
    after: Option<Uuid>,
}

/// Which part of a list was asked for: so many at most if nothing is said, and never more than so many.
pub(crate) struct Paged<const DEFAULT: i64 = { Page::LIMIT_MAX }, const MAX: i64 = { Page::LIMIT_MAX }> {
    page: Page,
    /// What else the query says, as it was sent.
    rest: String,
}

impl<S: Send + Sync, const DEFAULT: i64, const MAX: i64> FromRequestParts<S> for Paged<DEFAULT, MAX> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let Asked(window) = Asked::<Window>::from_request_parts(parts, state).await?;
        let limit = window.limit.unwrap_or(DEFAULT);
        if limit < 1 {
            return Err(Refusal::bad("invalid_query", "limit must be at least 1"));
        }
        let after = window.after.map(|after| after.to_string());
        let rest = without_window(parts.uri.query().unwrap_or_default());
        Ok(Self { page: Page { after, limit: limit.min(MAX) }, rest })
    }
}

impl<const DEFAULT: i64, const MAX: i64> Part for Paged<DEFAULT, MAX> {
    fn tell(operation: &mut Operation, _schemas: &mut SchemaGenerator) {
        let limit = json!({"type": "integer", "minimum": 1, "default": DEFAULT});
        let after = json!({"type": "string", "format": "uuid"});
        let most = format!("How many at most; more than {MAX} are never given.");
        operation.parameters.push(parameter("query", "limit", &most, limit));
        operation.parameters.push(parameter("query", "after", "The id of the last one that was seen.", after));
        operation.refusals.insert(400);
    }
}

fn without_window(query: &str) -> String {
    let is_kept = |pair: &&str| !pair.is_empty() && !["limit", "after"].contains(&pair.split('=').next().unwrap_or(""));
    query.split('&').filter(is_kept).map(|pair| format!("{pair}&")).collect()
}

impl<const DEFAULT: i64, const MAX: i64> Paged<DEFAULT, MAX> {
    /// As the store takes it.
    pub(crate) fn page(&self) -> Page {
        self.page.clone()
    }

    /// The answer with what the store gave for it.
    pub(crate) fn listed<T, I: Display>(&self, things: Vec<T>, id: impl Fn(&T) -> I) -> Listed<Vec<T>> {
        let is_full = i64::try_from(things.len()).is_ok_and(|length| length >= self.page.limit);
        let last = things.last().filter(|_| is_full).map(id);
        Listed { next: last.and_then(|last| self.next(&last)), body: things }
    }

    fn next(&self, last: &dyn Display) -> Option<HeaderValue> {
        let link = format!("<?{}limit={}&after={last}>; rel=\"next\"", self.rest, self.page.limit);
        // What cannot be written in a header was no query that anybody needs again.
        HeaderValue::try_from(link).ok()
    }
}

/// A part of a list.
pub(crate) struct Listed<B> {
    body: B,
    next: Option<HeaderValue>,
}

impl<B> Listed<B> {
    /// The same part in another body.
    pub(crate) fn map<C>(self, change: impl FnOnce(B) -> C) -> Listed<C> {
        Listed { body: change(self.body), next: self.next }
    }
}

impl<B: Serialize> IntoResponse for Listed<B> {
    fn into_response(self) -> Response {
        let mut response = Json(self.body).into_response();
        if let Some(next) = self.next {
            response.headers_mut().insert(LINK, next);
        }
        response
    }
}

impl<B: JsonSchema> Answer for Listed<B> {
    fn tell(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        let description = "Where the next part is (rel=\"next\"), when this one is full. Relative to the request.";
        let mut answer = json_content::<B>("It is so.", schemas);
        answer["headers"] = json!({"Link": {"description": description, "schema": {"type": "string"}}});
        operation.answers.insert(200, answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paged(query: &str, limit: i64) -> Paged {
        Paged { page: Page { after: None, limit }, rest: without_window(query) }
    }

    #[test]
    fn a_full_part_leads_to_the_next_and_keeps_the_rest_of_the_query() {
        let listed = paged("limit=2&pak_id=a%20b&after=x&&mode=full", 2).listed(vec![7, 8], |thing| *thing);
        assert_eq!(listed.next.unwrap(), "<?pak_id=a%20b&mode=full&limit=2&after=8>; rel=\"next\"");
        assert_eq!(paged("", 1).listed(vec![1], |thing| *thing).next.unwrap(), "<?limit=1&after=1>; rel=\"next\"");
    }

    #[test]
    fn a_part_that_is_not_full_leads_nowhere() {
        assert!(paged("limit=3", 3).listed(vec![7, 8], |thing| *thing).next.is_none());
        assert!(paged("limit=3", 3).listed(Vec::<u8>::new(), |thing| *thing).next.is_none());
    }
}
