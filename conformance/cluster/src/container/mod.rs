//! Provider `container`: the control plane of `local` in one container, from an image that is created here from the cached
//! binaries. No registry is needed.
//!
//! The container is unprivileged: user 65534, no capabilities, a read-only file system except for two directories in memory; its
//! ports are published on the loopback interface only. It ends with this program: when the connection that this program holds
//! open is closed, the control plane ends, and the engine removes the container.

mod archive;
mod cleanup;
mod image;
mod keep_alive;
mod run;

use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use base64::Engine as _;
use tokio::sync::oneshot;

use crate::access::{Access, Secret};
use crate::binaries::Binaries;
use crate::directory::GuardedDirectory;
use crate::error::{ClusterError, Failure};
use crate::home::Home;
use crate::kubeconfig_file;
use crate::name::ProviderName;
use crate::provider::{Cluster, Options, Provider};
use crate::version::Version;

use run::RunningContainer;

/// Size of the administrator's token.
const TOKEN_BYTES: usize = 24;

/// Starts control planes in containers.
#[derive(Clone, Debug)]
pub struct ContainerProvider {
    home: Home,
}

impl ContainerProvider {
    /// Uses the cache of this home.
    pub fn new(home: Home) -> Self {
        Self { home }
    }
}

impl Provider for ContainerProvider {
    fn name(&self) -> ProviderName {
        ProviderName::Container
    }

    fn start(&self, options: &Options) -> Result<Box<dyn Cluster>, ClusterError> {
        image::require_engine()?;
        let binaries = Binaries::prepare(&self.home, options.version, &options.stop)?;
        let directory = GuardedDirectory::new(options)?;
        let token = new_token()?;
        let mut thread = ContainerThread::start(binaries, options.clone(), token.clone())?;
        let running = thread.wait_until_ready()?;
        let kubeconfig = directory.path().join("kubeconfig");
        let authority = base64::engine::general_purpose::STANDARD.encode(&running.authority_pem);
        kubeconfig_file::write(&kubeconfig, &running.server, &authority, &token)
            .map_err(|error| ClusterError::from_io(&kubeconfig, &error))?;
        let access = Access {
            server: running.server.clone(),
            authority_pem: Some(running.authority_pem.clone()),
            token: Some(token),
            client_certificate: None,
            kubeconfig,
            context: None,
        };
        Ok(Box::new(ContainerCluster { thread, access, running, version: options.version, _directory: directory }))
    }
}

#[expect(clippy::disallowed_methods, reason = "a secret for a real cluster; injected entropy is for the simulation")]
fn new_token() -> Result<Secret, ClusterError> {
    let mut bytes = [0; TOKEN_BYTES];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|error| ClusterError::Failed(Failure::new(format!("no random bytes: {error}"), "")))?;
    Ok(Secret::new(hex::encode(bytes)))
}

struct ContainerCluster {
    thread: ContainerThread,
    access: Access,
    running: RunningContainer,
    version: Version,
    _directory: GuardedDirectory,
}

impl Cluster for ContainerCluster {
    fn access(&self) -> &Access {
        &self.access
    }

    fn version(&self) -> &str {
        self.version.release()
    }

    fn check(&mut self) -> Result<(), ClusterError> {
        if self.thread.handle.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(());
        }
        let reason = format!("the container {} ended unexpectedly", self.running.id);
        Err(ClusterError::Failed(Failure::new(
            reason,
            "check whether it was stopped, or the machine ran out of memory",
        )))
    }

    fn logs(&self) -> Option<&Path> {
        None
    }
}

/// Thread that owns the container, with its own runtime, so that `start` may be called from anywhere.
struct ContainerThread {
    release: Option<oneshot::Sender<()>>,
    ready: Receiver<Result<RunningContainer, ClusterError>>,
    handle: Option<JoinHandle<()>>,
}

impl ContainerThread {
    fn start(binaries: Binaries, options: Options, token: Secret) -> Result<Self, ClusterError> {
        let (release, released) = oneshot::channel();
        let (report, ready) = sync_channel(1);
        let work = move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _dropped = report.send(Err(ClusterError::from_io(Path::new("a runtime"), &error)));
                    return;
                }
            };
            runtime.block_on(run::run(&binaries, &options, &token, released, &report));
        };
        let handle = std::thread::Builder::new().name("container".to_owned()).spawn(work);
        let handle = handle.map_err(|error| ClusterError::from_io(Path::new("a thread"), &error))?;
        Ok(Self { release: Some(release), ready, handle: Some(handle) })
    }

    /// Waits for the thread, whose waits all have a timeout and check for an interruption.
    fn wait_until_ready(&mut self) -> Result<RunningContainer, ClusterError> {
        let gone = || ClusterError::Failed(Failure::new("the container's thread ended", ""));
        self.ready.recv().map_err(|_| gone())?
    }
}

impl Drop for ContainerThread {
    fn drop(&mut self) {
        drop(self.release.take());
        if let Some(thread) = self.handle.take() {
            // A panic of the thread has been reported already.
            let _ended = thread.join();
        }
    }
}
