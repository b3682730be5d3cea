//! Providers of clusters by name, with the simulated API server of the build that runs.

use sindri_cluster::program::ExitReason;
use sindri_cluster::{ContainerProvider, Home, KindProvider, LocalProvider, Provider, ProviderName, SimProvider};

use crate::binaries::Binaries;

/// Parses the value of `--cluster`.
pub fn parse_provider(name: &str) -> Result<ProviderName, ExitReason> {
    name.parse::<ProviderName>().map_err(|unknown| ExitReason::Usage(unknown.to_string()))
}

/// Returns the provider with this name.
pub fn create_provider(name: ProviderName, binaries: &Binaries) -> Result<Box<dyn Provider>, ExitReason> {
    match name {
        ProviderName::Sim => Ok(Box::new(SimProvider::new(&binaries.api_server))),
        ProviderName::Local => Ok(Box::new(LocalProvider::new(Home::from_env()))),
        ProviderName::Container => Ok(Box::new(ContainerProvider::new(Home::from_env()))),
        ProviderName::Kind => Ok(Box::new(KindProvider::default())),
        // Scenarios and benchmarks create and delete cluster-scoped objects.
        ProviderName::Kubeconfig => Err(ExitReason::Usage(
            "--cluster kubeconfig: scenarios and benchmarks need clusters that are not used for anything else"
                .to_owned(),
        )),
    }
}
