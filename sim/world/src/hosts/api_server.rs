//! The host of a simulated API server.

use std::future::pending;
use std::sync::Arc;

use sindri_apiserver::SharedServer;

use super::http_port::HTTP_PORT;
use crate::engine::Program;
use crate::http_faults::FaultInjector;
use crate::wall_clock::wall_time;

/// Returns the program of a simulated API server. Its state outlives its process, as that of etcd would.
pub fn api_server(server: SharedServer, faults: Arc<FaultInjector>) -> Program {
    Box::new(move |network| {
        let (server, faults) = (server.clone(), faults.clone());
        Box::pin(async move {
            let listener = network.listen(HTTP_PORT).await.expect("one process per host listens");
            sindri_apiserver::serve(listener, server, Arc::new(wall_time), faults, pending()).await;
        })
    })
}
