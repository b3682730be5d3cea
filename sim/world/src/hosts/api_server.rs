//! The host of a simulated API server.

use std::future::pending;
use std::sync::Arc;

use sindri_apiserver::{Port, SharedServer, WebhookClient};

use super::http_port::HTTP_PORT;
use crate::engine::Program;
use crate::http_faults::FaultInjector;
use crate::wall_clock::wall_time;

/// Returns the program of a simulated API server. Its state outlives its process, as that of etcd would. It calls webhooks at the
/// host of their URL, or at the host `NAME.NAMESPACE.svc` for a Service.
pub fn api_server(server: SharedServer, faults: Arc<FaultInjector>) -> Program {
    Box::new(move |network| {
        let (server, faults) = (server.clone(), faults.clone());
        Box::pin(async move {
            let listener = network.listen(HTTP_PORT).await.expect("one process per host listens");
            // Hosts of a world have names and no certificates.
            let webhooks = Arc::new(WebhookClient::plain(network.connector()));
            let port = Port { webhooks: Some(webhooks), ..Port::default() };
            sindri_apiserver::serve_port(listener, server, Arc::new(wall_time), faults, port, pending()).await;
        })
    })
}
