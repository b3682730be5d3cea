//! A whole recording, from the first cluster to the last file.
//!
//! Two clusters are used, one after the other: an API server alone, where nobody else writes, and a complete control
//! plane for what only controllers do. Both are fresh, and both end with the recording.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use sindri_cluster::program::ExitReason;
use sindri_cluster::{Cluster, ClusterError, Options, Provider, Stop, Version};
use thiserror::Error;

use crate::files::Files;
use crate::recording::{RecordError, record_documents, record_exchange};
use crate::script::Script;
use crate::target::{Target, TargetError};

/// Exchanges that take place at the same time. Each has a namespace of its own.
const AT_ONCE: usize = 4;
/// How often it is seen whether the end was asked for.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A recording that could not be made.
#[derive(Debug, Error)]
pub enum SessionError {
    /// There was no cluster, or it ended.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The cluster cannot be reached as it says.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// There is nothing to wait with.
    #[error("no runtime: {0}")]
    Runtime(#[from] std::io::Error),
    /// What could not be recorded, all of it.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Records(Vec<RecordError>),
}

impl SessionError {
    /// How a program ends because of it.
    pub fn ending(&self, stop: &Stop) -> ExitReason {
        match self {
            Self::Cluster(error) => ExitReason::from_cluster_error(error, stop),
            Self::Target(_) | Self::Runtime(_) | Self::Records(_) => ExitReason::Failed(self.to_string()),
        }
    }
}

/// What is recorded, and on what.
pub struct Session<'a> {
    /// Where clusters come from.
    pub provider: &'a dyn Provider,
    /// The version of Kubernetes.
    pub version: Version,
    /// Whether the documents are recorded too.
    pub documents: bool,
    /// The exchanges.
    pub scripts: &'a [Script],
    /// Whether to go on.
    pub stop: &'a Stop,
    /// Hears how far it is.
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
                files.extend(self.record_on_one(controllers, documents, &scripts)?);
            }
        }
        Ok(files)
    }

    fn record_on_one(&self, controllers: bool, documents: bool, scripts: &[&Script]) -> Result<Files, SessionError> {
        let what = if controllers { "a control plane" } else { "an API server" };
        (self.report)(format!("starting {what} {}", self.version.release()));
        let options =
            Options { version: self.version, pristine: !controllers, stop: self.stop.clone(), ..Options::default() };
        on_fresh_cluster(self.provider, &options, async |target: Target| self.play(&target, documents, scripts).await)
    }

    async fn play(&self, target: &Target, documents: bool, scripts: &[&Script]) -> Result<Files, SessionError> {
        let (mut files, mut failed) = (Files::new(), Vec::new());
        if documents {
            (self.report)("recording discovery and OpenAPI".to_owned());
            files.extend(record_documents(target).await.map_err(|error| SessionError::Records(vec![error]))?);
        }
        let recorded = |first: bool, at_once: usize| {
            let scripts = stream::iter(scripts).filter(move |script| std::future::ready(script.first == first));
            scripts.map(|script| record_exchange(script, target)).buffer_unordered(at_once)
        };
        let mut records = std::pin::pin!(recorded(true, 1).chain(recorded(false, AT_ONCE)));
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

/// Does something with a cluster of its own, until that is done or the end is asked for.
pub fn on_fresh_cluster<T, E>(
    provider: &dyn Provider,
    options: &Options,
    work: impl AsyncFnOnce(Target) -> Result<T, E>,
) -> Result<T, E>
where
    E: From<ClusterError> + From<TargetError> + From<std::io::Error>,
{
    let mut cluster = provider.start(options)?;
    let target = target_of(cluster.as_ref())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(async {
        tokio::select! {
            biased; // whoever asks for the end gets it
            () = asked_to_end(&options.stop) => Err(ClusterError::Interrupted.into()),
            done = work(target) => done,
        }
    });
    if done.is_err() && !options.stop.is_set() {
        // A cluster that ended explains more than the connections that broke with it.
        cluster.check()?;
    }
    done
}

/// How a cluster is reached.
pub fn target_of(cluster: &dyn Cluster) -> Result<Target, TargetError> {
    let access = cluster.access();
    let token = access.token.as_ref().map(|token| token.expose().trim());
    Target::new(&access.server, access.authority_pem.as_deref(), token)
}

/// Ends when the end is asked for.
pub async fn asked_to_end(stop: &Stop) {
    while !stop.is_set() {
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}
