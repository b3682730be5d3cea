//! The streams of one connection, from its upgrade to its end.

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;

use super::forward::forward_ports;
use super::run_process::{fail_process, run_process};
use crate::front::shared::SharedServer;
use crate::http::upgrade::{Session, Upgrade};

/// Serves the streams of an upgraded connection to their end.
pub(in crate::front) async fn serve_streams(server: &SharedServer, upgrade: Upgrade, connection: Upgraded) {
    let io = TokioIo::new(connection);
    let Upgrade { protocol, place, session, .. } = upgrade;
    // The client knows why its connection ended; the server has nothing to do.
    let _gone = match session {
        Session::Ports { ports } => forward_ports(server, &place, protocol, &ports, io).await,
        Session::Process { program, streams, is_attach } => {
            run_process(server, &place, (program, is_attach), (protocol, streams), io).await
        }
        Session::Failed { message, streams } => fail_process(&message, (protocol, streams), io).await,
    };
}
