//! Requests that change the protocol of their connection, to carry the streams of a pod.

use super::response::Response;
use crate::process::program::{Program, StandardStreams};

const WEBSOCKET: &str = "websocket";
const WEBSOCKET_VERSION: &str = "13";
const SPDY: &str = "spdy/3.1";
/// Prefix of the subprotocol of a WebSocket that carries frames of SPDY.
const TUNNEL: &str = "SPDY/3.1+";
/// Suffix of the protocols of Kubernetes.
const KUBERNETES: &str = ".k8s.io";
/// The subprotocol in which a client can end its input, and which the API server serves itself.
pub(crate) const V5: &str = "v5.channel.k8s.io";
/// Subprotocols of a WebSocket for an exec or an attach that the kubelet serves.
const PROCESS_SUBPROTOCOLS: [&str; 5] =
    ["", "channel.k8s.io", "base64.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io"];
/// Subprotocols of a WebSocket for a port-forward that the kubelet serves.
const PORT_SUBPROTOCOLS: [&str; 3] = ["", "v4.channel.k8s.io", "v4.base64.channel.k8s.io"];
/// Protocols over SPDY for an exec or an attach.
const PROCESS_VERSIONS: [&str; 4] = ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];
/// Protocols over SPDY for a port-forward.
const PORT_VERSIONS: [&str; 1] = ["portforward.k8s.io"];

/// Headers with which a client asks for another protocol. An absent header is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpgradeHeaders {
    /// `Connection`.
    pub connection: String,
    /// `Upgrade`.
    pub upgrade: String,
    /// `Sec-WebSocket-Protocol`.
    pub websocket_protocols: String,
    /// `Sec-WebSocket-Key`.
    pub websocket_key: String,
    /// `Sec-WebSocket-Version`.
    pub websocket_version: String,
    /// `X-Stream-Protocol-Version`, if given.
    pub stream_protocols: Option<String>,
}

impl UpgradeHeaders {
    /// True if the client asks for another protocol.
    pub(crate) fn is_requested(&self) -> bool {
        self.connection.to_ascii_lowercase().contains("upgrade")
    }

    /// True if the client asks for a WebSocket.
    pub(crate) fn is_websocket(&self) -> bool {
        self.is_requested() && self.upgrade.eq_ignore_ascii_case(WEBSOCKET)
    }

    fn subprotocols(&self) -> impl Iterator<Item = &str> {
        self.websocket_protocols.split(',').map(str::trim).filter(|protocol| !protocol.is_empty())
    }

    /// True if the client asks for the subprotocol in which it can end its input.
    pub(crate) fn accepts_v5(&self) -> bool {
        self.is_websocket() && self.subprotocols().any(|protocol| protocol == V5)
    }

    /// True if the client asks for frames of SPDY over a WebSocket.
    pub(crate) fn accepts_tunnel(&self) -> bool {
        self.is_websocket() && self.tunnelled_versions().next().is_some()
    }

    fn tunnelled_versions(&self) -> impl Iterator<Item = &str> {
        self.subprotocols().filter(|protocol| protocol.ends_with(KUBERNETES)).filter_map(|it| it.strip_prefix(TUNNEL))
    }

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

/// Protocol of a connection after its upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamProtocol {
    /// Messages of a WebSocket that begin with the number of a stream. Without subprotocol it is empty.
    WebSocket { subprotocol: &'static str },
    /// SPDY/3.1.
    Spdy { version: &'static str },
    /// SPDY/3.1 in the messages of a WebSocket.
    TunnelledSpdy { version: &'static str },
}

impl StreamProtocol {
    /// True if data is encoded in Base64.
    pub(crate) fn is_base64(self) -> bool {
        matches!(self, Self::WebSocket { subprotocol } if subprotocol.contains("base64"))
    }

    /// True if the client can end a stream by a message.
    pub(crate) fn has_close_messages(self) -> bool {
        self == Self::WebSocket { subprotocol: V5 }
    }

    /// True if the result of a process is an object, and not only the text of an error.
    pub(crate) fn has_status_objects(self) -> bool {
        let (Self::WebSocket { subprotocol: version } | Self::Spdy { version } | Self::TunnelledSpdy { version }) =
            self;
        version.starts_with("v4.") || version.starts_with("v5.")
    }

    /// True if a client with a terminal opens a stream for its size.
    pub(crate) fn has_resize_stream(self) -> bool {
        matches!(self, Self::Spdy { version } if version.starts_with("v4.") || version.starts_with("v3."))
    }
}

/// An accepted request for the streams of a pod: the protocol of its connection, and what answers. A port serves it; in other
/// places it only shows that the request was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade {
    pub(crate) protocol: StreamProtocol,
    /// `Sec-WebSocket-Key`; empty without a WebSocket.
    pub(crate) websocket_key: String,
    pub(crate) place: Place,
    pub(crate) session: Session,
}

/// A pod, and one of its containers unless it is about the pod itself. It ends when they do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) namespace: String,
    pub(crate) pod: String,
    pub(crate) uid: String,
    pub(crate) container: Option<String>,
    /// Start of the container that was running.
    pub(crate) started_at: String,
}

/// Streams of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Session {
    /// The process of an exec or an attach.
    Process { program: Program, streams: StandardStreams, is_attach: bool },
    /// An exec or an attach that fails: the error is sent on the streams.
    Failed { message: String, streams: StandardStreams },
    /// Connections to these ports; with SPDY, the client names the port of each connection.
    Ports { ports: Vec<u16> },
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
