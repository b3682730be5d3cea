//! `local`: the control plane as processes of this machine, on free ports of the loopback interface.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::access::{Access, ClientCertificate, Secret};
use crate::binaries::Binaries;
use crate::directory::wanted_path;
use crate::error::ClusterError;
use crate::home::Home;
use crate::leashed::Leashed;
use crate::name::ProviderName;
use crate::plane::{self, Ready};
use crate::provider::{Cluster, Options, Provider};
use crate::version::Version;

/// Starts control planes as processes.
#[derive(Clone, Debug)]
pub struct Local {
    home: Home,
}

impl Local {
    /// With the cache of this home.
    pub fn new(home: Home) -> Self {
        Self { home }
    }
}

impl Provider for Local {
    fn name(&self) -> ProviderName {
        ProviderName::Local
    }

    fn start(&self, options: &Options) -> Result<Box<dyn Cluster>, ClusterError> {
        let binaries = Binaries::prepare(&self.home, options.version, &options.stop)?;
        let directory = Directory::choose(options)?;
        let mut command = Command::new(&binaries.plane);
        command.args(["--leash", "stdin", "--directory"]).arg(&directory.path);
        command.arg("--binaries").arg(binaries.search_path());
        command.arg(format!("--port={}", options.port.unwrap_or(0)));
        command.arg(format!("--pristine={}", options.pristine)).arg(format!("--keep={}", options.keep));
        let started = Leashed::start(&mut command);
        let mut program = started.map_err(|error| ClusterError::file(&binaries.plane, &error))?;
        let ready = plane::await_ready(&mut program, &options.stop)?;
        let access = read_access(&ready)?;
        Ok(Box::new(LocalCluster { program, access, ready, version: options.version, _directory: directory }))
    }
}

/// Fields are dropped in this order: the processes end before their directory goes.
struct LocalCluster {
    program: Leashed,
    access: Access,
    ready: Ready,
    version: Version,
    _directory: Directory,
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
    let read = |path: &PathBuf| std::fs::read_to_string(path).map_err(|error| ClusterError::file(path, &error));
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

/// A directory that the control plane makes and removes; a control plane that was killed leaves that to us.
struct Directory {
    path: PathBuf,
    keep: bool,
}

impl Directory {
    fn choose(options: &Options) -> Result<Self, ClusterError> {
        Ok(Self { path: wanted_path(options)?, keep: options.keep })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !self.keep {
            // It is usually gone already.
            let _absent = std::fs::remove_dir_all(&self.path);
        }
    }
}
