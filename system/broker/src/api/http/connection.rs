//! The connection of a response.

use axum::response::Response;
use http::HeaderValue;
use http::header::CONNECTION;

/// Closes the connection after a response, because the store does not respond: the next connection may lead to a broker whose
/// store does.
pub(crate) fn closing_connection(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
