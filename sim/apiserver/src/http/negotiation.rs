//! Choice of the protocol for the streams of a pod, and the rejections of the API server and the kubelet.

use super::response::Response;
use super::upgrade::{StreamProtocol, UpgradeHeaders, V5};

const WEBSOCKET_VERSION: &str = "13";
const SPDY: &str = "spdy/3.1";
/// Subprotocols of a WebSocket for an exec or an attach that the kubelet serves.
const PROCESS_SUBPROTOCOLS: [&str; 5] =
    ["", "channel.k8s.io", "base64.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io"];
/// Subprotocols of a WebSocket for a port-forward that the kubelet serves.
const PORT_SUBPROTOCOLS: [&str; 3] = ["", "v4.channel.k8s.io", "v4.base64.channel.k8s.io"];
/// Protocols over SPDY for an exec or an attach.
const PROCESS_VERSIONS: [&str; 4] = ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];
/// Protocols over SPDY for a port-forward.
const PORT_VERSIONS: [&str; 1] = ["portforward.k8s.io"];

impl UpgradeHeaders {
    /// Returns the protocol of an exec or an attach that the kubelet serves, or the response that rejects the request.
    pub(crate) fn negotiate_process(&self, is_get: bool) -> Result<StreamProtocol, Response> {
        if self.is_websocket() {
            return self.negotiate_websocket(is_get, &PROCESS_SUBPROTOCOLS);
        }
        self.negotiate_spdy(&PROCESS_VERSIONS).map(|version| StreamProtocol::Spdy { version })
    }

    /// Returns the protocol of an exec or an attach in which the client can end its input.
    pub(crate) fn negotiate_v5(&self, is_get: bool) -> Result<StreamProtocol, Response> {
        self.negotiate_websocket(is_get, &[V5])
    }

    /// Returns the protocol of a port-forward, or the response that rejects the request.
    pub(crate) fn negotiate_ports(&self, is_get: bool) -> Result<StreamProtocol, Response> {
        if self.accepts_tunnel() {
            let requested: Vec<&str> = self.tunnelled_versions().collect();
            let version = choose_version(&requested, &PORT_VERSIONS)?;
            self.check_websocket(is_get)?;
            return Ok(StreamProtocol::TunnelledSpdy { version });
        }
        if self.is_websocket() {
            return self.negotiate_websocket(is_get, &PORT_SUBPROTOCOLS);
        }
        self.negotiate_spdy(&PORT_VERSIONS).map(|version| StreamProtocol::Spdy { version })
    }

    fn negotiate_websocket(
        &self,
        is_get: bool,
        supported: &'static [&'static str],
    ) -> Result<StreamProtocol, Response> {
        self.check_websocket(is_get)?;
        let mut requested: Vec<&str> = self.subprotocols().collect();
        if requested.is_empty() {
            requested.push("");
        }
        let chosen = requested.iter().find_map(|wanted| supported.iter().find(|known| *known == wanted));
        let subprotocol = chosen.copied().ok_or_else(|| bare(403, ""))?;
        Ok(StreamProtocol::WebSocket { subprotocol })
    }

    /// Checks the handshake of a WebSocket.
    fn check_websocket(&self, is_get: bool) -> Result<(), Response> {
        if !is_get {
            return Err(bare(405, "bad method"));
        }
        if self.websocket_key.is_empty() {
            return Err(bare(400, "mismatch challenge/response"));
        }
        if self.websocket_version != WEBSOCKET_VERSION {
            let rejection = bare(400, "missing or bad WebSocket Version");
            return Err(rejection.with_header("sec-websocket-version", WEBSOCKET_VERSION.to_owned()));
        }
        Ok(())
    }

    fn negotiate_spdy(&self, supported: &'static [&'static str]) -> Result<&'static str, Response> {
        const HEADER: &str = "X-Stream-Protocol-Version";
        let Some(requested) = &self.stream_protocols else {
            let message = format!("unable to upgrade: header {HEADER} does not exist in request\n");
            return Err(Response::text(400, &message));
        };
        let requested: Vec<&str> = requested.split(',').map(str::trim).filter(|one| !one.is_empty()).collect();
        if requested.is_empty() {
            let message = format!("unable to upgrade: header {HEADER} contains [], but no valid protocols\n");
            return Err(Response::text(400, &message));
        }
        let version = choose_version(&requested, supported)?;
        if !self.upgrade.to_ascii_lowercase().contains(SPDY) {
            return Err(Response::text(400, "unable to upgrade: missing upgrade headers in request\n"));
        }
        Ok(version)
    }
}

/// Returns the first requested version that is supported.
fn choose_version(requested: &[&str], supported: &'static [&'static str]) -> Result<&'static str, Response> {
    let chosen = requested.iter().find_map(|wanted| supported.iter().find(|known| *known == wanted));
    chosen.copied().ok_or_else(|| {
        let message = format!(
            "unable to upgrade: unable to negotiate protocol: client supports [{}], server accepts [{}]\n",
            requested.join(" "),
            supported.join(" ")
        );
        let rejection = Response::text(403, &message);
        match rejection {
            Response::Full { status, mut headers, body } => {
                let accepted =
                    supported.iter().map(|known| ("x-accepted-stream-protocol-versions", (*known).to_owned()));
                headers.extend(accepted);
                Response::Full { status, headers, body }
            }
            other => other,
        }
    })
}

/// Returns a response without a content type, as that of a failed handshake.
fn bare(status: u16, body: &str) -> Response {
    Response::Full { status, headers: Vec::new(), body: body.to_owned().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn websocket(protocols: &str) -> UpgradeHeaders {
        UpgradeHeaders {
            connection: "keep-alive, Upgrade".to_owned(),
            upgrade: "WebSocket".to_owned(),
            websocket_protocols: protocols.to_owned(),
            websocket_key: "key".to_owned(),
            websocket_version: "13".to_owned(),
            stream_protocols: None,
        }
    }

    fn spdy(protocols: &str) -> UpgradeHeaders {
        UpgradeHeaders {
            connection: "Upgrade".to_owned(),
            upgrade: "SPDY/3.1".to_owned(),
            stream_protocols: Some(protocols.to_owned()),
            ..UpgradeHeaders::default()
        }
    }

    #[test]
    fn the_first_protocol_that_both_know_is_chosen() {
        let subprotocol = |wanted: &str| websocket(wanted).negotiate_process(true);
        let accepted = |subprotocol| Ok(StreamProtocol::WebSocket { subprotocol });
        assert_eq!(subprotocol("v4.base64.channel.k8s.io, v4.channel.k8s.io"), accepted("v4.base64.channel.k8s.io"));
        assert_eq!(subprotocol(""), accepted(""));
        assert_eq!(subprotocol("other").expect_err("unknown").status(), Some(403));
        assert!(websocket("v5.channel.k8s.io,v4.channel.k8s.io").accepts_v5());
        let version = |wanted: &str| spdy(wanted).negotiate_process(false);
        assert_eq!(version("v9.x,v2.channel.k8s.io"), Ok(StreamProtocol::Spdy { version: "v2.channel.k8s.io" }));
        let rejection = version("v9.x").expect_err("unknown");
        assert_eq!(rejection.header("x-accepted-stream-protocol-versions"), Some("v4.channel.k8s.io"));
        let tunnel = websocket("SPDY/3.1+portforward.k8s.io");
        assert!(tunnel.accepts_tunnel());
        let accepted = Ok(StreamProtocol::TunnelledSpdy { version: "portforward.k8s.io" });
        assert_eq!(tunnel.negotiate_ports(true), accepted);
        assert_eq!(websocket("SPDY/3.1+other.k8s.io").negotiate_ports(true).expect_err("unknown").status(), Some(403));
    }

    #[test]
    fn a_broken_handshake_is_rejected() {
        let status = |headers: UpgradeHeaders| headers.negotiate_process(true).expect_err("rejected").status();
        assert_eq!(status(UpgradeHeaders { websocket_key: String::new(), ..websocket("") }), Some(400));
        assert_eq!(status(UpgradeHeaders { websocket_version: "8".to_owned(), ..websocket("") }), Some(400));
        assert_eq!(websocket("").negotiate_process(false).expect_err("rejected").status(), Some(405));
        assert_eq!(status(UpgradeHeaders { stream_protocols: None, ..spdy("") }), Some(400));
        assert_eq!(status(UpgradeHeaders { upgrade: "h2c".to_owned(), ..spdy("v4.channel.k8s.io") }), Some(400));
    }
}
