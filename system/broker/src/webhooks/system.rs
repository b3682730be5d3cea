//! Connector for production: the resolver, TCP and the trusted authorities of this machine.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use tokio::net::TcpStream;

use super::connect::{Dial, GuardedConnector, Resolve, Trust};
use super::target::TargetPolicy;
use crate::trust::load_system_trust;

/// Resolver of this machine.
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    async fn resolve(&self, host: String, port: u16) -> io::Result<Vec<SocketAddr>> {
        tokio::net::lookup_host((host, port)).await.map(Iterator::collect)
    }
}

/// Dialer over TCP.
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

/// Makes the connector for production. The authorities are read at the first connection with TLS, so that a broker without
/// webhooks does not read them, and one without authorities still starts.
pub fn system_connector(policy: TargetPolicy) -> GuardedConnector<SystemResolver, TcpDialer> {
    let config = OnceLock::new();
    let trust: Trust = Arc::new(move || config.get_or_init(load_system_trust).clone());
    GuardedConnector::new(SystemResolver, TcpDialer, trust, policy)
}
