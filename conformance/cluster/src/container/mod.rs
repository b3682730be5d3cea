//! `container`: the same control plane in one plain container, from an image that is made here out of the cached
//! binaries. No registry is asked for anything.
//!
//! The container has no rights: another user, no capabilities, a file system that cannot be written but for two places
//! in memory; its ports are published on the loopback interface only. It hangs on a leash as the processes of `local`
//! do: a connection that this program holds. When that is closed the control plane ends, and the engine removes the
//! container.

mod archive;
mod broom;
mod image;
mod leash;
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

/// Bytes of the administrator's token.
const TOKEN_BYTES: usize = 24;

/// Starts control planes in containers.
#[derive(Clone, Debug)]
pub struct Container {
    home: Home,
}

impl Container {
    /// With the cache of this home.
    pub fn new(home: Home) -> Self {
        Self { home }
    }
}

/// What the thread that has the container tells when the control plane works.
struct Running {
    id: String,
    server: String,
    authority_pem: String,
}

impl Provider for Container {
    fn name(&self) -> ProviderName {
        ProviderName::Container
    }

    fn start(&self, options: &Options) -> Result<Box<dyn Cluster>, ClusterError> {
        image::require_engine()?;
        let binaries = Binaries::prepare(&self.home, options.version, &options.stop)?;
        let directory = GuardedDirectory::new(options)?;
        let token = new_token()?;
        let mut held = Held::start(binaries, options.clone(), token.clone())?;
        let running = held.await_ready()?;
        let kubeconfig = directory.path().join("kubeconfig");
        let authority = base64::engine::general_purpose::STANDARD.encode(&running.authority_pem);
        kubeconfig_file::write(&kubeconfig, &running.server, &authority, &token)
            .map_err(|error| ClusterError::file(&kubeconfig, &error))?;
        let access = Access {
            server: running.server.clone(),
            authority_pem: Some(running.authority_pem.clone()),
            token: Some(token),
            client_certificate: None,
            kubeconfig,
            context: None,
        };
        Ok(Box::new(ContainerCluster { held, access, running, version: options.version, _directory: directory }))
    }
}

#[expect(clippy::disallowed_methods, reason = "a secret for a real cluster: what is handed in elsewhere is simulated")]
fn new_token() -> Result<Secret, ClusterError> {
    let mut bytes = [0; TOKEN_BYTES];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|error| ClusterError::Failed(Failure::new(format!("no random bytes: {error}"), "")))?;
    Ok(Secret::new(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
}

struct ContainerCluster {
    held: Held,
    access: Access,
    running: Running,
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
        if self.held.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(());
        }
        let reason = format!("the container {} ended by itself", self.running.id);
        Err(ClusterError::Failed(Failure::new(reason, "see whether someone ended it, or memory ran out")))
    }

    fn logs(&self) -> Option<&Path> {
        None
    }
}

/// The thread that has the container: its runtime is its own, so that `start` may be called from anywhere.
struct Held {
    release: Option<oneshot::Sender<()>>,
    ready: Receiver<Result<Running, ClusterError>>,
    thread: Option<JoinHandle<()>>,
}

impl Held {
    fn start(binaries: Binaries, options: Options, token: Secret) -> Result<Self, ClusterError> {
        let (release, released) = oneshot::channel();
        let (tell, ready) = sync_channel(1);
        let work = move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _unheard = tell.send(Err(ClusterError::file(Path::new("a runtime"), &error)));
                    return;
                }
            };
            runtime.block_on(run::run(&binaries, &options, &token, released, &tell));
        };
        let thread = std::thread::Builder::new().name("container".to_owned()).spawn(work);
        let thread = thread.map_err(|error| ClusterError::file(Path::new("a thread"), &error))?;
        Ok(Self { release: Some(release), ready, thread: Some(thread) })
    }

    /// Every wait of the thread has a bound, and looks whether it is to go on.
    fn await_ready(&mut self) -> Result<Running, ClusterError> {
        let gone = || ClusterError::Failed(Failure::new("the container's thread ended", ""));
        self.ready.recv().map_err(|_| gone())?
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.release.take());
        if let Some(thread) = self.thread.take() {
            // A panic there was reported where it happened.
            let _ended = thread.join();
        }
    }
}
