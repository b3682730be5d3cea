//! A client of any cluster, for what is done here in clusters: on a thread and a runtime of its own, so that it may be
//! used from anywhere.

use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::access::Access;
use crate::error::{ClusterError, Failure};

/// How long a piece of work in a cluster may take.
const WORK_MAX: Duration = Duration::from_secs(120);

/// Does something in a cluster, and waits for it.
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
            done.map_err(|_| ClusterError::late("an answer", WORK_MAX))?.map_err(|error| failed(&error.to_string()))
        })
    };
    std::thread::scope(|scope| scope.spawn(worker).join().unwrap_or_else(|_| Err(failed("the client panicked"))))
}

impl Access {
    /// A client of the cluster. It belongs to the runtime on which this is called.
    pub async fn connect(&self) -> Result<Client, ClusterError> {
        Client::try_from(self.config().await?).map_err(|error| failed(&error.to_string()))
    }

    /// Where the cluster is, and who is allowed in.
    pub async fn config(&self) -> Result<Config, ClusterError> {
        let path = self.kubeconfig.display();
        let kubeconfig =
            Kubeconfig::read_from(&self.kubeconfig).map_err(|error| failed(&format!("{path}: {error}")))?;
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        config.map_err(|error| failed(&format!("{path}: {error}")))
    }
}

fn failed(words: &str) -> ClusterError {
    ClusterError::Failed(Failure::new(
        words,
        "see whether the cluster answers: `kubectl --kubeconfig … get namespaces`",
    ))
}
