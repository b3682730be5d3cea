//! Response that changes the protocol of a connection.

use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderName, HeaderValue, StatusCode};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::http::upgrade::{StreamProtocol, Upgrade};

const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");

/// Returns the response to a request whose connection is upgraded.
pub(in crate::front) fn upgrade_response<B>(upgrade: &Upgrade, body: B) -> http::Response<B> {
    let mut response = http::Response::new(body);
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    let subprotocol = match upgrade.protocol {
        StreamProtocol::Spdy { version } => {
            headers.insert(UPGRADE, HeaderValue::from_static("SPDY/3.1"));
            headers.insert(STREAM_PROTOCOL, HeaderValue::from_static(version));
            return response;
        }
        StreamProtocol::WebSocket { subprotocol } => subprotocol.to_owned(),
        StreamProtocol::TunnelledSpdy { version } => format!("SPDY/3.1+{version}"),
    };
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    let accepted = derive_accept_key(upgrade.websocket_key.as_bytes());
    let values = [(SEC_WEBSOCKET_ACCEPT, accepted), (SEC_WEBSOCKET_PROTOCOL, subprotocol)];
    for (name, value) in values.into_iter().filter(|(_, value)| !value.is_empty()) {
        headers.extend(HeaderValue::from_str(&value).ok().map(|value| (name, value)));
    }
    response
}
