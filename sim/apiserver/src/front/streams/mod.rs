//! Streams of pods on upgraded connections: the process of an exec or an attach, and connections to ports.
//!
//! The machine has decided what answers, and in which protocol; here are the WebSocket, SPDY, and the time. Every stream ends
//! with its connection, its container or pod, or after a long time without input.

mod connection;
mod forward;
mod handshake;
mod process_streams;
mod run_process;
mod session;
mod websocket;
mod wire;

pub(super) use self::handshake::upgrade_response;
pub(super) use self::session::serve_streams;
