//! Client of any cluster. Work runs on a thread and a runtime of its own, so that it may be called from anywhere.

use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::access::Access;
use crate::error::{ClusterError, Failure};

/// Timeout of one piece of work.
const WORK_MAX: Duration = Duration::from_secs(120);

/// Runs work with a client of the cluster, and waits for it.
pub(crate) fn in_cluster<T: Send>(
    access: &Access,
    work: impl AsyncFnOnce(Client) -> Result<T, kube::Error> + Send,
) -> Result<T, ClusterError> {
    let worker = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(&error.to_string()))?;
        runtime.block_on(async {
            let client = access.connect().await?;
            let done = tokio::time::timeout(WORK_MAX, work(client)).await;
            done.map_err(|_| ClusterError::timed_out("a response of the cluster", WORK_MAX))?
                .map_err(|error| failed(&error.to_string()))
        })
    };
    std::thread::scope(|scope| scope.spawn(worker).join().unwrap_or_else(|_| Err(failed("the client panicked"))))
}

impl Access {
    /// Connects to the cluster. The client belongs to the runtime on which this is called.
    pub async fn connect(&self) -> Result<Client, ClusterError> {
        Client::try_from(self.config().await?).map_err(|error| failed(&error.to_string()))
    }

    /// Reads the client configuration from the kubeconfig.
    pub async fn config(&self) -> Result<Config, ClusterError> {
        let path = self.kubeconfig.display();
        let kubeconfig =
            Kubeconfig::read_from(&self.kubeconfig).map_err(|error| failed(&format!("{path}: {error}")))?;
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        config.map_err(|error| failed(&format!("{path}: {error}")))
    }
}

fn failed(reason: &str) -> ClusterError {
    ClusterError::Failed(Failure::new(
        reason,
        "check that the cluster responds: `kubectl --kubeconfig … get namespaces`",
    ))
}
