//! The machine's own ways to receivers, for production: its resolver, its TCP, and the authorities that it trusts.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use tokio::net::TcpStream;

use super::connect::{Dial, GuardedConnector, Resolve, Trust};
use super::target::TargetPolicy;
use crate::trust::system_trust;

/// Asks the machine's resolver.
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    async fn resolve(&self, host: String, port: u16) -> io::Result<Vec<SocketAddr>> {
        tokio::net::lookup_host((host, port)).await.map(Iterator::collect)
    }
}

/// Connects over TCP.
#[derive(Clone, Copy, Debug)]
pub struct TcpDialer;

impl Dial for TcpDialer {
    type Stream = TcpStream;

    async fn dial(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// The connector for production. The authorities are read at the first secure connection: a broker that calls nobody
/// does not pay for them, and one without any still starts.
pub fn system_connector(policy: TargetPolicy) -> GuardedConnector<SystemResolver, TcpDialer> {
    let known = OnceLock::new();
    let trust: Trust = Arc::new(move || known.get_or_init(system_trust).clone());
    GuardedConnector::new(SystemResolver, TcpDialer, trust, policy)
}
