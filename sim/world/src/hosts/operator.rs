//! The host of the operator, who calls the API of the broker when the scenario says so.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::Uri;
use sindri_client::Client;
use tokio::sync::{Mutex, mpsc};

use super::broker_connector::BrokerConnector;
use crate::engine::Program;

/// Calls of the operator to the broker.
pub type OperatorJob = Box<dyn FnOnce(Client) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Returns the program of the operator, which carries out the jobs of the queue one after the other.
pub fn operator(key: String, queue: mpsc::Receiver<OperatorJob>, brokers: usize) -> Program {
    let queue = Arc::new(Mutex::new(queue));
    Box::new(move |network| {
        let (queue, key) = (queue.clone(), key.clone());
        Box::pin(async move {
            let broker = Uri::from_static("http://broker");
            let connector = BrokerConnector::new(network.connector(), brokers, brokers - 1);
            let client = Client::new(connector, broker, &key).expect("the address and the key are well formed");
            let mut queue = queue.lock().await;
            while let Some(job) = queue.recv().await {
                job(client.clone()).await;
            }
        })
    })
}
