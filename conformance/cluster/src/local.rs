//! Provider `local`: the real control plane as processes on this machine, on a port of the loopback interface.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::access::{Access, ClientCertificate, Secret};
use crate::binaries::Binaries;
use crate::directory::choose_path;
use crate::error::ClusterError;
use crate::home::Home;
use crate::name::ProviderName;
use crate::owned_process::OwnedProcess;
use crate::plane::{self, Ready};
use crate::provider::{Cluster, Options, Provider};
use crate::version::Version;

/// Starts control planes as processes.
#[derive(Clone, Debug)]
pub struct LocalProvider {
    home: Home,
}

impl LocalProvider {
    /// Uses the cache of this home.
    pub fn new(home: Home) -> Self {
        Self { home }
    }
}

impl Provider for LocalProvider {
    fn name(&self) -> ProviderName {
        ProviderName::Local
    }

    fn start(&self, options: &Options) -> Result<Box<dyn Cluster>, ClusterError> {
        let binaries = Binaries::prepare(&self.home, options.version, &options.stop)?;
        let directory = PlaneDirectory::choose(options)?;
        let mut command = Command::new(&binaries.plane);
        command.args(["--keep-alive", "stdin", "--directory"]).arg(&directory.path);
        command.arg("--binaries").arg(binaries.search_path());
        command.arg(format!("--port={}", options.port.unwrap_or(0)));
        command.arg(format!("--pristine={}", options.pristine)).arg(format!("--keep={}", options.keep));
        let started = OwnedProcess::start(&mut command);
        let mut program = started.map_err(|error| ClusterError::from_io(&binaries.plane, &error))?;
        let ready = plane::wait_until_ready(&mut program, &options.stop)?;
        let access = read_access(&ready)?;
        Ok(Box::new(LocalCluster { program, access, ready, version: options.version, _directory: directory }))
    }
}

/// A running control plane. Fields are dropped in this order: the processes end before their directory is removed.
struct LocalCluster {
    program: OwnedProcess,
    access: Access,
    ready: Ready,
    version: Version,
    _directory: PlaneDirectory,
}

impl Cluster for LocalCluster {
    fn access(&self) -> &Access {
        &self.access
    }

    fn version(&self) -> &str {
        self.version.release()
    }

    fn check(&mut self) -> Result<(), ClusterError> {
        plane::check(&mut self.program)
    }

    fn processes(&self) -> Vec<(String, u32)> {
        self.ready.pids.iter().map(|(name, id)| (name.clone(), *id)).collect()
    }

    fn logs(&self) -> Option<&Path> {
        Some(&self.ready.logs)
    }
}

fn read_access(ready: &Ready) -> Result<Access, ClusterError> {
    let read = |path: &PathBuf| std::fs::read_to_string(path).map_err(|error| ClusterError::from_io(path, &error));
    Ok(Access {
        server: ready.server.clone(),
        authority_pem: Some(ready.authority_pem.clone()),
        token: Some(Secret::new(read(&ready.token)?)),
        client_certificate: Some(ClientCertificate {
            certificate_pem: read(&ready.client_certificate)?,
            key_pem: Secret::new(read(&ready.client_key)?),
        }),
        kubeconfig: ready.kubeconfig.clone(),
        context: None,
    })
}

/// Directory that the `plane` program creates and removes. Dropping this removes it if the program was killed.
struct PlaneDirectory {
    path: PathBuf,
    keep: bool,
}

impl PlaneDirectory {
    fn choose(options: &Options) -> Result<Self, ClusterError> {
        Ok(Self { path: choose_path(options)?, keep: options.keep })
    }
}

impl Drop for PlaneDirectory {
    fn drop(&mut self) {
        if !self.keep {
            // It is usually removed already.
            let _absent = std::fs::remove_dir_all(&self.path);
        }
    }
}
