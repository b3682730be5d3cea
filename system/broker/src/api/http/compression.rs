//! Compression of responses with gzip, for clients that accept it. Cached responses are not compressed.
//!
//! docs/decisions/0064-compression-by-hand.md has the reasons for not using the layer of tower-http.

use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, ETAG, VARY};
use http::{HeaderMap, HeaderValue};
use hyper::body::{Body as _, Frame};

/// Size below which a response is not compressed.
const BYTES_MIN: u64 = 1024;
/// Size of the slice that one poll of the body compresses, so that other tasks are not delayed.
const SLICE_BYTES: usize = 64 * 1024;

/// Compresses a response if the client accepts gzip and the body is large enough.
pub(crate) async fn compress(request: Request, next: Next) -> Response {
    let is_accepted = accepts_gzip(request.headers());
    compress_response(next.run(request).await, is_accepted)
}

/// Compresses a response if it is large enough and the client accepts gzip.
pub(crate) fn compress_response(mut response: Response, is_accepted: bool) -> Response {
    if response.body().size_hint().lower() < BYTES_MIN || response.headers().contains_key(CONTENT_ENCODING) {
        return response;
    }
    response.headers_mut().append(VARY, HeaderValue::from_static("accept-encoding"));
    if is_accepted { into_gzip(response) } else { response }
}

fn into_gzip(response: Response) -> Response {
    let (mut head, body) = response.into_parts();
    head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    head.headers.remove(CONTENT_LENGTH);
    if let Some(tag) = head.headers.get(ETAG).and_then(to_weak_etag) {
        head.headers.insert(ETAG, tag);
    }
    let encoder = Some(GzEncoder::new(Vec::new(), Compression::fast()));
    Response::from_parts(head, Body::new(GzipBody { body, pending: Bytes::new(), encoder }))
}

/// Returns the ETag as a weak one, for a body with other bytes: a compressed one, or one without some bundles. `None` if it is
/// weak already.
pub(crate) fn to_weak_etag(tag: &HeaderValue) -> Option<HeaderValue> {
    let text = tag.to_str().ok().filter(|text| !text.starts_with("W/"))?;
    HeaderValue::try_from(format!("W/{text}")).ok()
}

/// Returns true if gzip is in `Accept-Encoding` with a weight above 0.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        is_gzip && weight.is_none_or(|weight| weight.parse::<f32>().is_ok_and(|weight| weight > 0.0))
    })
}

/// Body that is compressed while it is sent.
struct GzipBody {
    body: Body,
    /// Data that is not compressed yet.
    pending: Bytes,
    /// `None` after the end.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl hyper::body::Body for GzipBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        while this.encoder.is_some() {
            if this.pending.is_empty() {
                match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                    Some(Ok(frame)) => this.pending = frame.into_data().unwrap_or_default(),
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    None => return Poll::Ready(this.finish()),
                }
            }
            if let Some(frame) = this.compress_slice() {
                return Poll::Ready(Some(frame));
            }
        }
        Poll::Ready(None)
    }
}

impl GzipBody {
    /// Compresses a slice; returns the output, if there is any.
    fn compress_slice(&mut self) -> Option<Result<Frame<Bytes>, axum::Error>> {
        let slice = self.pending.split_to(self.pending.len().min(SLICE_BYTES));
        let encoder = self.encoder.as_mut()?;
        if let Err(error) = encoder.write_all(&slice) {
            return Some(Err(axum::Error::new(error)));
        }
        let output = std::mem::take(encoder.get_mut());
        (!output.is_empty()).then(|| Ok(Frame::data(output.into())))
    }

    fn finish(&mut self) -> Option<Result<Frame<Bytes>, axum::Error>> {
        let trailer = self.encoder.take()?.finish();
        Some(trailer.map(|bytes| Frame::data(bytes.into())).map_err(axum::Error::new))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use http_body_util::BodyExt;

    use super::*;

    fn accept_encoding(value: &'static str) -> HeaderMap {
        [(ACCEPT_ENCODING, HeaderValue::from_static(value))].into_iter().collect()
    }

    #[test]
    fn gzip_is_used_only_if_it_is_accepted() {
        for value in ["gzip", "deflate, GZIP;q=0.5", "br;q=1, gzip ; q=0.1"] {
            assert!(accepts_gzip(&accept_encoding(value)), "{value}");
        }
        for value in ["", "identity", "gzip;q=0", "gzip; q=0.000", "gzip;q=x", "xgzip"] {
            assert!(!accepts_gzip(&accept_encoding(value)), "{value}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[tokio::test]
    async fn a_compressed_body_decompresses_to_the_original() {
        for size in [1, SLICE_BYTES, 5 * SLICE_BYTES + 17] {
            let plain: Vec<u8> = (0..size).map(|index| (index * index % 251) as u8).collect();
            let mut response = Response::new(Body::from(plain.clone()));
            response.headers_mut().insert(ETAG, HeaderValue::from_static("\"a\""));
            let compressed = into_gzip(response);
            assert_eq!(compressed.headers()[CONTENT_ENCODING], "gzip");
            assert_eq!(compressed.headers()[ETAG], "W/\"a\"");
            let bytes = compressed.into_body().collect().await.unwrap().to_bytes();
            let mut decompressed = Vec::new();
            flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut decompressed).unwrap();
            assert!(decompressed == plain);
        }
    }
}
