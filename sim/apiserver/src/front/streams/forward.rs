//! Connections to the ports of a pod, over a WebSocket or over SPDY.

use std::collections::BTreeMap;
use std::pin::pin;

use super::connection::{Gone, IDLE_MAX, Io, ended};
use super::websocket::{Channels, Incoming};
use super::wire::SpdyWire;
use crate::front::shared::SharedServer;
use crate::http::upgrade::{Place, StreamProtocol};
use crate::process::port_server::{PortAnswer, PortOutput, PortServer};
use crate::spdy::connection::Event;
use crate::spdy::headers::Headers;

/// Forwards ports until the client or the pod ends.
pub(super) async fn forward_ports(
    server: &SharedServer,
    place: &Place,
    protocol: StreamProtocol,
    ports: &[u16],
    io: Io,
) -> Result<(), Gone> {
    if matches!(protocol, StreamProtocol::WebSocket { .. }) {
        let mut channels = Channels::accept(protocol, io).await;
        forward_channels(server, place, ports, &mut channels).await?;
        channels.close().await;
        return Ok(());
    }
    let mut forwarding =
        SpdyForwarding { server, place, wire: SpdyWire::accept(protocol, io).await, connections: BTreeMap::new() };
    forwarding.run().await?;
    forwarding.wire.close().await;
    Ok(())
}

/// Returns the error of a port on which nothing listens, as a container runtime words it.
fn refused(place: &Place, port: u16) -> String {
    let Place { uid, .. } = place;
    format!(
        "error forwarding port {port} to pod {uid}, uid : failed to execute portforward in network namespace \
         \"/var/run/netns/cni-{uid}\": failed to connect to localhost:{port} inside namespace {uid:?}, IPv4: dial tcp4 \
         127.0.0.1:{port}: connect: connection refused IPv6 dial tcp6: address localhost: no suitable address found "
    )
}

/// Forwards ports over a WebSocket: each has a channel for data and one for an error, which begin with its number.
async fn forward_channels(
    server: &SharedServer,
    place: &Place,
    ports: &[u16],
    channels: &mut Channels,
) -> Result<(), Gone> {
    let mut servers: BTreeMap<u8, PortServer> = BTreeMap::new();
    // The number of a channel is a byte, so that there are at most 128 ports.
    for (data, port) in (0..=u8::MAX - 1).step_by(2).zip(ports) {
        for channel in [data, data + 1] {
            channels.send(channel, &port.to_le_bytes()).await?;
        }
        match server.with(|machine| machine.answer_port(place, *port)) {
            PortAnswer::Refused => channels.send(data + 1, refused(place, *port).as_bytes()).await?,
            answer => drop(servers.insert(data, PortServer::accept(answer))),
        }
    }
    let mut ended = pin!(ended(server, place));
    while !servers.is_empty() {
        let incoming = tokio::select! {
            biased; // The end of the pod counts first.
            () = &mut ended => return Ok(()),
            incoming = channels.next() => incoming?,
            () = tokio::time::sleep(IDLE_MAX) => return Err(Gone),
        };
        let Incoming::Data { channel, bytes } = incoming else { continue };
        let Some(answered) = servers.get_mut(&channel) else { continue };
        let PortOutput { bytes, has_ended } = answered.receive(&bytes);
        if !bytes.is_empty() {
            channels.send(channel, &bytes).await?;
        }
        if has_ended {
            servers.remove(&channel);
        }
    }
    Ok(())
}

/// Streams of one connection to a port.
#[derive(Debug, Default)]
struct Pair {
    data: Option<u32>,
    error: Option<u32>,
    server: Option<PortServer>,
}

/// Connections to ports over SPDY: each has a stream for data and one for an error.
struct SpdyForwarding<'a> {
    server: &'a SharedServer,
    place: &'a Place,
    wire: SpdyWire,
    /// Connections by the id that the client gave them. Streams bound their number.
    connections: BTreeMap<String, Pair>,
}

impl SpdyForwarding<'_> {
    async fn run(&mut self) -> Result<(), Gone> {
        let mut ended = pin!(ended(self.server, self.place));
        loop {
            self.wire.flush().await?;
            let event = tokio::select! {
                biased; // The end of the pod counts first.
                () = &mut ended => return Ok(()),
                event = self.wire.next() => event?,
                () = tokio::time::sleep(IDLE_MAX) => return Err(Gone),
            };
            match event {
                Some(Event::Opened { stream, headers }) => self.open(stream, &headers),
                Some(Event::Data { stream, bytes }) => self.receive(stream, |server| server.receive(&bytes)),
                Some(Event::Ended { stream }) => self.receive(stream, PortServer::end_input),
                Some(Event::Reset { stream }) => self.remove(stream),
                None => {}
            }
        }
    }

    /// Accepts a stream, or refuses one with invalid headers. A connection begins when both its streams are open.
    fn open(&mut self, stream: u32, headers: &Headers) {
        let header = |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
        let port = header("port").and_then(|port| port.parse::<u16>().ok()).filter(|port| *port > 0);
        let kind = header("streamtype").filter(|kind| matches!(*kind, "data" | "error"));
        let (Some(port), Some(kind)) = (port, kind) else { return self.wire.connection.refuse(stream) };
        let is_data = kind == "data";
        // Older clients give no id: they open the stream for data after the one for errors.
        let first = if is_data { stream.saturating_sub(2) } else { stream };
        let id = header("requestid").map_or_else(|| first.to_string(), str::to_owned);
        let pair = self.connections.entry(id).or_default();
        let place = if is_data { &mut pair.data } else { &mut pair.error };
        if place.is_some() {
            return self.wire.connection.refuse(stream);
        }
        *place = Some(stream);
        self.wire.connection.accept(stream);
        let (Some(data), Some(error)) = (pair.data, pair.error) else { return };
        match self.server.with(|machine| machine.answer_port(self.place, port)) {
            PortAnswer::Refused => {
                self.wire.connection.write(error, refused(self.place, port).as_bytes());
                self.wire.connection.end(error);
                self.wire.connection.reset(data);
                self.remove(data);
            }
            answer => pair.server = Some(PortServer::accept(answer)),
        }
    }

    /// Passes input to the server of a connection, and writes its output.
    fn receive(&mut self, stream: u32, handle: impl FnOnce(&mut PortServer) -> PortOutput) {
        let Some(pair) = self.connections.values_mut().find(|pair| pair.data == Some(stream)) else { return };
        let Some(server) = &mut pair.server else { return };
        let output = handle(server);
        self.wire.connection.write(stream, &output.bytes);
        if output.has_ended {
            for stream in [pair.data, pair.error].into_iter().flatten() {
                self.wire.connection.end(stream);
            }
            self.remove(stream);
        }
    }

    fn remove(&mut self, stream: u32) {
        self.connections.retain(|_, pair| pair.data != Some(stream) && pair.error != Some(stream));
    }
}
