//! State of the network, and its events. It has no tasks and no clock: the engine sets the time and enters the hosts that
//! became runnable.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::ErrorKind;
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;

use crate::libc_shim::Nanos;
use crate::rng::SeededRng;

const MILLISECOND: Nanos = 1_000_000;
const SECOND: Nanos = 1_000 * MILLISECOND;
/// Number of SYNs that a connect sends before it only waits for its timeout.
const SYN_TRIES: u32 = 7;
/// Timeout of a connect without a response.
const SYN_TIMEOUT: Nanos = 127 * SECOND;
/// Wait before the first retransmission; each further one is twice as long.
const RETRANSMIT_FIRST: Nanos = 200 * MILLISECOND;
/// Longest wait before a retransmission.
const RETRANSMIT_LONGEST: Nanos = 120 * SECOND;
/// Time after which a stream breaks that cannot deliver.
const STALL_TIMEOUT: Nanos = 924 * SECOND;
/// Bytes that may be on their way or unread before a writer has to wait.
const WINDOW_BYTES: usize = 64 * 1024;
/// Most connections that wait to be accepted by one listener.
const BACKLOG_MAX: usize = 1024;
/// Latency within one host.
const LOOPBACK_LATENCY: Nanos = 20_000;

/// Number of a host of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostId(pub usize);

/// Travel time of a packet: each one gets a random value between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Shortest travel time.
    pub min: Nanos,
    /// Longest travel time.
    pub max: Nanos,
}

impl Default for Latency {
    fn default() -> Self {
        Self { min: MILLISECOND / 2, max: 2 * MILLISECOND }
    }
}

#[derive(Clone, Copy)]
struct Link {
    up: bool,
    latency: Latency,
}

pub(super) type ConnectionId = u64;

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Client,
    Server,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

#[derive(Default)]
struct Listening {
    backlog: VecDeque<ConnectionId>,
    waker: Option<Waker>,
}

struct Host {
    name: String,
    /// Number of processes that ran here; a stream belongs to one of them.
    incarnation: u32,
    listening: BTreeMap<u16, Listening>,
}

enum Segment {
    /// Last step of the handshake: the server's end appears in the backlog.
    Established,
    Data(Bytes),
    End,
}

/// Sending half of one end.
#[derive(Default)]
struct Outgoing {
    queue: VecDeque<Segment>,
    queued_bytes: usize,
    waits_for_retry: bool,
    retries: u32,
    stalled_since: Option<Nanos>,
    last_arrival: Nanos,
    ended: bool,
}

struct End {
    host: HostId,
    incarnation: u32,
    /// Time after which the connection breaks if this end cannot deliver.
    stall_max: Nanos,
    /// True while a program holds this end.
    is_held: bool,
    outgoing: Outgoing,
    unread: VecDeque<Bytes>,
    unread_bytes: usize,
    peer_ended: bool,
    error: Option<ErrorKind>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl End {
    fn new(host: HostId, incarnation: u32) -> Self {
        Self {
            host,
            incarnation,
            stall_max: STALL_TIMEOUT,
            is_held: true,
            outgoing: Outgoing::default(),
            unread: VecDeque::new(),
            unread_bytes: 0,
            peer_ended: false,
            error: None,
            reader: None,
            writer: None,
        }
    }

    fn wake_all(&mut self) {
        self.reader.take().into_iter().chain(self.writer.take()).for_each(Waker::wake);
    }

    /// Returns true if nothing more can happen at this end.
    fn is_finished(&self) -> bool {
        !self.is_held && (self.error.is_some() || self.outgoing.queue.is_empty())
    }
}

struct Connection {
    client: End,
    server: End,
    port: u16,
    established: bool,
    connector: Option<Waker>,
    started: Nanos,
}

impl Connection {
    fn end(&self, side: Side) -> &End {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    fn end_mut(&mut self, side: Side) -> &mut End {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }
}

enum Event {
    SendSyn { connection: ConnectionId, tries: u32 },
    SynArrives(ConnectionId),
    SynAnswered { connection: ConnectionId, accepted: bool },
    ConnectTimesOut(ConnectionId),
    Retransmit { connection: ConnectionId, from: Side },
    Arrives { connection: ConnectionId, from: Side, segment: Segment },
    ResetArrives { connection: ConnectionId, at: Side },
}

/// Hosts, links, connections, and the events to come.
pub struct Network {
    now: Nanos,
    hosts: Vec<Host>,
    links: BTreeMap<(HostId, HostId), Link>,
    connections: BTreeMap<ConnectionId, Connection>,
    next_connection: ConnectionId,
    events: BTreeMap<(Nanos, u64), Event>,
    next_event: u64,
    runnable: BTreeSet<HostId>,
    dice: SeededRng,
}

impl Network {
    /// Creates an empty network.
    pub fn new(seed: u64) -> Self {
        Self {
            now: 0,
            hosts: Vec::new(),
            links: BTreeMap::new(),
            connections: BTreeMap::new(),
            next_connection: 1,
            events: BTreeMap::new(),
            next_event: 0,
            runnable: BTreeSet::new(),
            dice: SeededRng::new(seed, "network"),
        }
    }

    /// Adds a host.
    pub fn add_host(&mut self, name: &str) -> HostId {
        self.hosts.push(Host { name: name.to_owned(), incarnation: 0, listening: BTreeMap::new() });
        HostId(self.hosts.len() - 1)
    }

    /// Starts a new process on a host.
    pub fn boot(&mut self, host: HostId) {
        self.hosts[host.0].incarnation += 1;
        self.runnable.insert(host);
    }

    /// Ends the process of a host and closes its connections, as the kernel does.
    pub fn kill(&mut self, host: HostId) {
        self.hosts[host.0].listening.clear();
        let incarnation = self.hosts[host.0].incarnation;
        let held: Vec<_> = self
            .connections
            .iter()
            .flat_map(|(id, connection)| [Side::Client, Side::Server].map(|side| (*id, side, connection.end(side))))
            .filter(|(_, _, end)| end.host == host && end.incarnation == incarnation)
            .map(|(id, side, _)| (id, side))
            .collect();
        // The process may be forgotten rather than dropped, so no destructor closes these ends.
        held.into_iter().for_each(|(id, side)| self.release(id, side));
        self.runnable.remove(&host);
    }

    /// Breaks every connection between two hosts and loses the segments on their way, as a middlebox that restarts does.
    pub fn sever(&mut self, one: HostId, other: HostId) {
        let between = |connection: &Connection| {
            let hosts = [connection.client.host, connection.server.host];
            hosts == [one, other] || hosts == [other, one]
        };
        let broken: Vec<ConnectionId> =
            self.connections.iter().filter(|(_, connection)| between(connection)).map(|(id, _)| *id).collect();
        for id in broken {
            self.fail(id, Side::Client, ErrorKind::ConnectionReset);
            self.fail(id, Side::Server, ErrorKind::ConnectionReset);
        }
    }

    /// Cuts or repairs the link from one host to another; the opposite direction is a link of its own.
    pub fn set_up(&mut self, from: HostId, to: HostId, up: bool) {
        let latency = self.link(from, to).latency;
        self.links.insert((from, to), Link { up, latency });
    }

    /// Sets the latency from one host to another.
    pub fn set_latency(&mut self, from: HostId, to: HostId, latency: Latency) {
        let up = self.link(from, to).up;
        self.links.insert((from, to), Link { up, latency });
    }

    /// Returns the time of the next event.
    pub fn next_due(&self) -> Option<Nanos> {
        self.events.first_key_value().map(|((due, _), _)| *due)
    }

    /// Moves the time to `now` and carries out every event that is due.
    pub fn advance(&mut self, now: Nanos) {
        assert!(now >= self.now, "time never goes back");
        self.now = now;
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= now) {
            let event = entry.remove();
            self.handle(event);
        }
    }

    /// Returns the hosts that became runnable since the last call.
    pub fn take_runnable(&mut self) -> BTreeSet<HostId> {
        std::mem::take(&mut self.runnable)
    }

    /// Marks a host as runnable for a reason outside of the network.
    pub fn mark_runnable(&mut self, host: HostId) {
        self.runnable.insert(host);
    }

    fn link(&self, from: HostId, to: HostId) -> Link {
        if from == to {
            return Link { up: true, latency: Latency { min: LOOPBACK_LATENCY, max: LOOPBACK_LATENCY } };
        }
        self.links.get(&(from, to)).copied().unwrap_or(Link { up: true, latency: Latency::default() })
    }

    fn schedule(&mut self, due: Nanos, event: Event) {
        self.next_event += 1;
        self.events.insert((due, self.next_event), event);
    }

    /// Returns the travel time of a packet that is sent now; `None` if it is lost.
    fn travel(&mut self, from: HostId, to: HostId) -> Option<Nanos> {
        let link = self.link(from, to);
        link.up.then(|| self.dice.between(link.latency.min, link.latency.max))
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::SendSyn { connection, tries } => self.send_syn(connection, tries),
            Event::SynArrives(connection) => self.syn_arrives(connection),
            Event::SynAnswered { connection, accepted: true } => self.establish(connection),
            Event::SynAnswered { connection, accepted: false } => {
                self.fail_connect(connection, ErrorKind::ConnectionRefused);
            }
            Event::ConnectTimesOut(connection) => self.fail_connect(connection, ErrorKind::TimedOut),
            Event::Retransmit { connection, from } => {
                if let Some(found) = self.connections.get_mut(&connection) {
                    found.end_mut(from).outgoing.waits_for_retry = false;
                    self.pump(connection, from);
                }
            }
            Event::Arrives { connection, from, segment } => self.arrives(connection, from, segment),
            Event::ResetArrives { connection, at } => self.fail(connection, at, ErrorKind::ConnectionReset),
        }
    }

    // ---- connecting ----

    pub(super) fn start_connect(&mut self, from: HostId, to: &str, port: u16) -> Result<ConnectionId, ErrorKind> {
        let to = self.hosts.iter().position(|host| host.name == to).map(HostId).ok_or(ErrorKind::NotFound)?;
        let id = self.next_connection;
        self.next_connection += 1;
        let client = End::new(from, self.hosts[from.0].incarnation);
        let mut server = End::new(to, 0);
        // No program holds the server's end until it is in a backlog.
        server.is_held = false;
        let started = self.now;
        self.connections.insert(id, Connection { client, server, port, established: false, connector: None, started });
        self.schedule(started, Event::SendSyn { connection: id, tries: 0 });
        Ok(id)
    }

    /// Sets the time after which a connection breaks whose client cannot deliver.
    pub(super) fn set_stall_max(&mut self, id: ConnectionId, stall_max: Duration) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.client.stall_max = Nanos::try_from(stall_max.as_nanos()).unwrap_or(Nanos::MAX);
        }
    }

    /// Returns the result of a connect; `None` while it is not decided.
    pub(super) fn poll_connect(&mut self, id: ConnectionId, waker: &Waker) -> Option<Result<(), ErrorKind>> {
        let Some(connection) = self.connections.get_mut(&id) else { return Some(Err(ErrorKind::ConnectionReset)) };
        if let Some(error) = connection.client.error {
            return Some(Err(error));
        }
        if connection.established {
            return Some(Ok(()));
        }
        connection.connector = Some(waker.clone());
        None
    }

    fn connecting(&self, id: ConnectionId) -> Option<&Connection> {
        self.connections.get(&id).filter(|connection| !connection.established && connection.client.error.is_none())
    }

    fn send_syn(&mut self, id: ConnectionId, tries: u32) {
        let Some(connection) = self.connecting(id) else { return };
        let (from, to, started) = (connection.client.host, connection.server.host, connection.started);
        if tries + 1 < SYN_TRIES {
            self.schedule(self.now + (SECOND << tries), Event::SendSyn { connection: id, tries: tries + 1 });
        } else {
            self.schedule((started + SYN_TIMEOUT).max(self.now), Event::ConnectTimesOut(id));
        }
        if let Some(travel) = self.travel(from, to) {
            self.schedule(self.now + travel, Event::SynArrives(id));
        }
    }

    fn syn_arrives(&mut self, id: ConnectionId) {
        let Some(connection) = self.connecting(id) else { return };
        let (from, to, port) = (connection.client.host, connection.server.host, connection.port);
        let backlog = self.hosts[to.0].listening.get(&port).map(|listening| listening.backlog.len());
        // A full backlog drops the SYN, as Linux does; without a listener the connect is refused.
        let accepted = match backlog {
            Some(length) if length >= BACKLOG_MAX => return,
            Some(_) => true,
            None => false,
        };
        if let Some(travel) = self.travel(to, from) {
            self.schedule(self.now + travel, Event::SynAnswered { connection: id, accepted });
        }
    }

    fn establish(&mut self, id: ConnectionId) {
        if self.connecting(id).is_none() {
            return;
        }
        let now = self.now;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.established = true;
        connection.server.incarnation = self.hosts[connection.server.host.0].incarnation;
        connection.client.outgoing.queue.push_front(Segment::Established);
        connection.client.outgoing.last_arrival = now;
        let host = connection.client.host;
        connection.connector.take().into_iter().for_each(Waker::wake);
        self.runnable.insert(host);
        self.pump(id, Side::Client);
    }

    fn fail_connect(&mut self, id: ConnectionId, error: ErrorKind) {
        if self.connecting(id).is_some() {
            self.fail(id, Side::Client, error);
        }
    }

    // ---- listening ----

    pub(super) fn listen(&mut self, host: HostId, port: u16) -> Result<u32, ErrorKind> {
        let host = &mut self.hosts[host.0];
        if host.listening.contains_key(&port) {
            return Err(ErrorKind::AddrInUse);
        }
        host.listening.insert(port, Listening::default());
        Ok(host.incarnation)
    }

    pub(super) fn accept(&mut self, host: HostId, port: u16, waker: &Waker) -> Option<ConnectionId> {
        let listening = self.hosts[host.0].listening.get_mut(&port)?;
        let accepted = listening.backlog.pop_front();
        if accepted.is_none() {
            listening.waker = Some(waker.clone());
        }
        accepted
    }

    /// Returns the name of the host that opened a connection.
    pub(super) fn client_name(&self, id: ConnectionId) -> String {
        let client = self.connections.get(&id).map(|connection| connection.client.host);
        client.map(|host| self.hosts[host.0].name.clone()).unwrap_or_default()
    }

    pub(super) fn stop_listening(&mut self, host: HostId, incarnation: u32, port: u16) {
        let host = &mut self.hosts[host.0];
        if host.incarnation == incarnation {
            host.listening.remove(&port);
        }
    }

    // ---- transmitting ----

    /// Sends what an end has queued, in order; stops at the first segment that the link loses.
    fn pump(&mut self, id: ConnectionId, from: Side) {
        loop {
            let Some(connection) = self.connections.get(&id).filter(|connection| connection.established) else {
                return;
            };
            let (sender, receiver) = (connection.end(from), connection.end(from.other()));
            if sender.outgoing.waits_for_retry || sender.outgoing.queue.is_empty() {
                break;
            }
            let (source, target) = (sender.host, receiver.host);
            match self.travel(source, target) {
                Some(travel) => self.dispatch(id, from, travel),
                None => {
                    self.wait_for_retry(id, from);
                    break;
                }
            }
        }
        self.collect(id);
    }

    fn dispatch(&mut self, id: ConnectionId, from: Side, travel: Nanos) {
        let now = self.now;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let outgoing = &mut connection.end_mut(from).outgoing;
        let Some(segment) = outgoing.queue.pop_front() else { return };
        (outgoing.retries, outgoing.stalled_since) = (0, None);
        // A stream keeps its order, although each segment has a travel time of its own.
        let arrival = (now + travel).max(outgoing.last_arrival + 1);
        outgoing.last_arrival = arrival;
        self.schedule(arrival, Event::Arrives { connection: id, from, segment });
    }

    fn wait_for_retry(&mut self, id: ConnectionId, from: Side) {
        let now = self.now;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let end = connection.end_mut(from);
        let (stall_max, outgoing) = (end.stall_max, &mut end.outgoing);
        let since = *outgoing.stalled_since.get_or_insert(now);
        if now - since >= stall_max {
            return self.fail(id, from, ErrorKind::TimedOut);
        }
        let wait = (RETRANSMIT_FIRST << outgoing.retries.min(10)).min(RETRANSMIT_LONGEST).min(since + stall_max - now);
        outgoing.retries += 1;
        outgoing.waits_for_retry = true;
        self.schedule(now + wait, Event::Retransmit { connection: id, from });
    }

    fn arrives(&mut self, id: ConnectionId, from: Side, segment: Segment) {
        let at = from.other();
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let (port, end) = (connection.port, connection.end(at));
        let (host, incarnation, failed, held) = (end.host, end.incarnation, end.error.is_some(), end.is_held);
        if self.hosts[host.0].incarnation != incarnation || failed {
            return self.reset(id, from);
        }
        match segment {
            Segment::Established => {
                let Some(listening) = self.hosts[host.0].listening.get_mut(&port) else { return self.reset(id, from) };
                listening.backlog.push_back(id);
                listening.waker.take().into_iter().for_each(Waker::wake);
                connection.server.is_held = true;
            }
            // The program has closed its end and does not read any more.
            Segment::Data(_) if !held => return self.reset(id, from),
            Segment::Data(bytes) => {
                let length = bytes.len();
                connection.end_mut(from).outgoing.queued_bytes -= length;
                let end = connection.end_mut(at);
                end.unread_bytes += length;
                end.unread.push_back(bytes);
                end.reader.take().into_iter().for_each(Waker::wake);
            }
            Segment::End => {
                let end = connection.end_mut(at);
                end.peer_ended = true;
                end.reader.take().into_iter().for_each(Waker::wake);
            }
        }
        self.runnable.insert(host);
    }

    /// Sends a reset to one side: the other does not know the connection.
    fn reset(&mut self, id: ConnectionId, at: Side) {
        let Some(connection) = self.connections.get(&id) else { return };
        let (source, target) = (connection.end(at.other()).host, connection.end(at).host);
        if let Some(travel) = self.travel(source, target) {
            self.schedule(self.now + travel, Event::ResetArrives { connection: id, at });
        }
    }

    fn fail(&mut self, id: ConnectionId, at: Side, error: ErrorKind) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let end = connection.end_mut(at);
        end.error.get_or_insert(error);
        end.unread.clear();
        end.unread_bytes = 0;
        end.outgoing.queue.clear();
        end.wake_all();
        let host = end.host;
        connection.connector.take().into_iter().for_each(Waker::wake);
        self.runnable.insert(host);
        self.collect(id);
    }

    // ---- reading and writing ----

    pub(super) fn read(
        &mut self,
        id: ConnectionId,
        side: Side,
        max: usize,
        waker: &Waker,
    ) -> Option<Result<Bytes, ErrorKind>> {
        let Some(connection) = self.connections.get_mut(&id) else { return Some(Err(ErrorKind::ConnectionReset)) };
        let end = connection.end_mut(side);
        if let Some(error) = end.error {
            return Some(Err(error));
        }
        let Some(front) = end.unread.front_mut() else {
            if end.peer_ended {
                return Some(Ok(Bytes::new()));
            }
            end.reader = Some(waker.clone());
            return None;
        };
        let bytes = front.split_to(max.min(front.len()));
        if front.is_empty() {
            end.unread.pop_front();
        }
        end.unread_bytes -= bytes.len();
        let peer = connection.end_mut(side.other());
        if let Some(writer) = peer.writer.take() {
            writer.wake();
            self.runnable.insert(peer.host);
        }
        Some(Ok(bytes))
    }

    pub(super) fn write(
        &mut self,
        id: ConnectionId,
        side: Side,
        bytes: &[u8],
        waker: &Waker,
    ) -> Option<Result<usize, ErrorKind>> {
        let Some(connection) = self.connections.get_mut(&id) else { return Some(Err(ErrorKind::ConnectionReset)) };
        let unread = connection.end(side.other()).unread_bytes;
        let end = connection.end_mut(side);
        if let Some(error) = end.error {
            return Some(Err(error));
        }
        if end.outgoing.ended {
            return Some(Err(ErrorKind::BrokenPipe));
        }
        let room = WINDOW_BYTES.saturating_sub(end.outgoing.queued_bytes + unread);
        if room == 0 {
            end.writer = Some(waker.clone());
            return None;
        }
        let length = room.min(bytes.len());
        end.outgoing.queued_bytes += length;
        end.outgoing.queue.push_back(Segment::Data(Bytes::copy_from_slice(&bytes[..length])));
        self.pump(id, side);
        Some(Ok(length))
    }

    /// Ends the sending half: the program will write no more.
    pub(super) fn finish(&mut self, id: ConnectionId, side: Side) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let end = connection.end_mut(side);
        if !end.outgoing.ended && end.error.is_none() {
            end.outgoing.ended = true;
            end.outgoing.queue.push_back(Segment::End);
            self.pump(id, side);
        }
    }

    /// Closes one end: the program has dropped it.
    pub(super) fn release(&mut self, id: ConnectionId, side: Side) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let established = connection.established;
        let end = connection.end_mut(side);
        if !end.is_held {
            return;
        }
        end.is_held = false;
        if !established {
            self.connections.remove(&id);
        } else if end.error.is_some() {
            self.collect(id);
        } else if end.unread_bytes > 0 {
            // As the kernel does: closing with unread bytes resets the connection.
            end.error = Some(ErrorKind::ConnectionReset);
            end.outgoing.queue.clear();
            self.reset(id, side.other());
        } else {
            self.finish(id, side);
        }
    }

    fn collect(&mut self, id: ConnectionId) {
        let finished = self.connections.get(&id).is_some_and(|connection| {
            if connection.established {
                connection.client.is_finished() && connection.server.is_finished()
            } else {
                connection.client.is_finished()
            }
        });
        if finished {
            self.connections.remove(&id);
        }
    }
}
