//! The network of the fast engine: hosts, links and byte streams that behave as TCP does.
//!
//! Driven by events, not by ticks. A connect under a partition repeats its SYN and fails after 127 s; an open stream stalls
//! and resumes, and breaks after 924 s; a killed process closes its streams; a segment for a process that has ended is
//! answered with a reset. Left out: windows that depend on acknowledgements, bandwidth, and duplicates and reordering within
//! a stream, which TCP hides from programs anyway.

mod network;
mod stream;

pub use network::{HostId, Latency, Network};
pub use stream::{FastListener, NetworkHandle, SharedNetwork};
