//! Requests that change the protocol of their connection, to carry the streams of a pod.

use crate::process::program::{Program, StandardStreams};

const WEBSOCKET: &str = "websocket";
/// Prefix of the subprotocol of a WebSocket that carries frames of SPDY.
const TUNNEL: &str = "SPDY/3.1+";
/// Suffix of the protocols of Kubernetes.
const KUBERNETES: &str = ".k8s.io";
/// The subprotocol in which a client can end its input, and which the API server serves itself.
pub(crate) const V5: &str = "v5.channel.k8s.io";

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

    pub(super) fn subprotocols(&self) -> impl Iterator<Item = &str> {
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

    pub(super) fn tunnelled_versions(&self) -> impl Iterator<Item = &str> {
        self.subprotocols().filter(|protocol| protocol.ends_with(KUBERNETES)).filter_map(|it| it.strip_prefix(TUNNEL))
    }
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
