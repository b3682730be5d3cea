//! A whole recording, from the first cluster to the last file.
//!
//! Two new clusters are used, one after the other: an API server alone, without other writers, and a complete control plane for
//! the behaviour of controllers.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use sindri_cluster::program::ExitReason;
use sindri_cluster::{Cluster, ClusterError, Options, Provider, Stop, Version};
use thiserror::Error;

use crate::files::Files;
use crate::recording::{RecordError, record_documents, record_exchange};
use crate::script::Script;
use crate::target::{Target, TargetError};

/// Concurrent exchanges. Each has a namespace of its own.
const CONCURRENCY: usize = 4;
/// Time between two checks for an interruption.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A recording that could not be made.
#[derive(Debug, Error)]
pub enum SessionError {
    /// No cluster, or it ended.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The address of the cluster is invalid.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// No runtime.
    #[error("no runtime: {0}")]
    Runtime(#[from] std::io::Error),
    /// All documents and exchanges that could not be recorded.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Records(Vec<RecordError>),
}

impl SessionError {
    /// Returns the exit reason of the program.
    pub fn to_exit_reason(&self, stop: &Stop) -> ExitReason {
        match self {
            Self::Cluster(error) => ExitReason::from_cluster_error(error, stop),
            Self::Target(_) | Self::Runtime(_) | Self::Records(_) => ExitReason::Failed(self.to_string()),
        }
    }
}

/// Parameters of a recording.
pub struct Session<'a> {
    /// Provider of clusters.
    pub provider: &'a dyn Provider,
    /// Version of Kubernetes.
    pub version: Version,
    /// True if the documents are recorded too.
    pub documents: bool,
    /// Exchanges.
    pub scripts: &'a [Script],
    /// Interrupts the recording.
    pub stop: &'a Stop,
    /// Prints progress.
    pub report: fn(String),
}

impl Session<'_> {
    /// Records everything.
    pub fn record(&self) -> Result<Files, SessionError> {
        let mut files = Files::new();
        for controllers in [false, true] {
            let scripts: Vec<&Script> =
                self.scripts.iter().filter(|script| script.controllers == controllers).collect();
            let documents = self.documents && !controllers;
            if documents || !scripts.is_empty() {
                files.extend(self.record_on_cluster(controllers, documents, &scripts)?);
            }
        }
        Ok(files)
    }

    fn record_on_cluster(
        &self,
        controllers: bool,
        documents: bool,
        scripts: &[&Script],
    ) -> Result<Files, SessionError> {
        let what = if controllers { "a control plane" } else { "an API server" };
        (self.report)(format!("starting {what} {}", self.version.release()));
        let options =
            Options { version: self.version, pristine: !controllers, stop: self.stop.clone(), ..Options::default() };
        run_on_new_cluster(self.provider, &options, async |target: Target| {
            self.record_on_target(&target, documents, scripts).await
        })
    }

    async fn record_on_target(
        &self,
        target: &Target,
        documents: bool,
        scripts: &[&Script],
    ) -> Result<Files, SessionError> {
        let (mut files, mut failed) = (Files::new(), Vec::new());
        if documents {
            (self.report)("recording discovery and OpenAPI".to_owned());
            files.extend(record_documents(target).await.map_err(|error| SessionError::Records(vec![error]))?);
        }
        let recorded = |first: bool, concurrency: usize| {
            let scripts = stream::iter(scripts).filter(move |script| std::future::ready(script.first == first));
            scripts.map(|script| record_exchange(script, target)).buffer_unordered(concurrency)
        };
        let mut records = std::pin::pin!(recorded(true, 1).chain(recorded(false, CONCURRENCY)));
        let mut done = 0;
        while let Some(record) = records.next().await {
            done += 1;
            match record {
                Ok((name, text)) => {
                    (self.report)(format!("{done:>3} of {} {name}", scripts.len()));
                    files.insert(name, text);
                }
                Err(error) => {
                    (self.report)(format!("{done:>3} of {} FAILED {error}", scripts.len()));
                    failed.push(error);
                }
            }
        }
        if failed.is_empty() { Ok(files) } else { Err(SessionError::Records(failed)) }
    }
}

/// Runs work with a new cluster, until it is done or interrupted.
pub fn run_on_new_cluster<T, E>(
    provider: &dyn Provider,
    options: &Options,
    work: impl AsyncFnOnce(Target) -> Result<T, E>,
) -> Result<T, E>
where
    E: From<ClusterError> + From<TargetError> + From<std::io::Error>,
{
    let mut cluster = provider.start(options)?;
    let target = cluster_target(cluster.as_ref())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(async {
        tokio::select! {
            biased; // an interruption has priority
            () = wait_for_stop(&options.stop) => Err(ClusterError::Interrupted.into()),
            done = work(target) => done,
        }
    });
    if done.is_err() && !options.stop.is_set() {
        // The error of a cluster that ended explains more than that of its connections.
        cluster.check()?;
    }
    done
}

/// Returns the address and credentials of a cluster.
pub fn cluster_target(cluster: &dyn Cluster) -> Result<Target, TargetError> {
    let access = cluster.access();
    let token = access.token.as_ref().map(|token| token.expose().trim());
    Target::new(&access.server, access.authority_pem.as_deref(), token)
}

/// Waits until the flag is set.
pub async fn wait_for_stop(stop: &Stop) {
    while !stop.is_set() {
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}
