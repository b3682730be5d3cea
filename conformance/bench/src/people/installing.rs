//! Time from `helm install` until the programs are ready, on a real control plane. Pods are processes of this machine; no images are
//! pulled.

use sindri_cluster::{Home, LocalProvider, Options, Provider};
use sindri_conformance::installation::{AGENT, BROKER, Installation};
use sindri_conformance::workspace::Workspace;

use super::bench::PeopleBench;
use crate::clock::now;
use crate::figures::{Bar, Figures};

/// Measures both charts on a new cluster.
pub fn measure(bench: &PeopleBench, figures: &mut Figures) -> Result<(), String> {
    let helm = bench.helm.as_deref().ok_or("no --helm was given")?;
    let workspace = Workspace::new(bench.binaries.clone(), bench.servers.runtime.clone());
    let workspace = workspace.map_err(|error| error.to_string())?;
    let provider = LocalProvider::new(Home::from_env());
    let cluster = provider.start(&Options::default()).map_err(|error| error.to_string())?;
    let mut installation = Installation::new(workspace, cluster, helm)?;
    let start = now();
    installation.install(BROKER, &[])?;
    figures.add("helm install of the broker, with its keys, to ready", start.elapsed().as_secs_f64(), "s", Bar::None);
    installation.register_agent()?;
    let start = now();
    installation.install(AGENT, &[])?;
    figures.add("helm install of two replicas of an agent, to ready", start.elapsed().as_secs_f64(), "s", Bar::None);
    Ok(())
}
