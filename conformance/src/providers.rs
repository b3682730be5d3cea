//! Providers of clusters by name, with the simulated API server of the build that runs.

use sindri_cluster::program::Ending;
use sindri_cluster::{Container, Home, Kind, Local, Provider, ProviderName, Sim};

use crate::binaries::Binaries;

/// Parses the value of `--cluster`.
pub fn parse_provider(name: &str) -> Result<ProviderName, Ending> {
    name.parse::<ProviderName>().map_err(|unknown| Ending::Mistake(unknown.to_string()))
}

/// Returns the provider with this name.
pub fn create_provider(name: ProviderName, binaries: &Binaries) -> Result<Box<dyn Provider>, Ending> {
    match name {
        ProviderName::Sim => Ok(Box::new(Sim::new(&binaries.api_server))),
        ProviderName::Local => Ok(Box::new(Local::new(Home::of_user()))),
        ProviderName::Container => Ok(Box::new(Container::new(Home::of_user()))),
        ProviderName::Kind => Ok(Box::new(Kind::default())),
        // Scenarios and benchmarks create and delete cluster-scoped objects.
        ProviderName::Kubeconfig => Err(Ending::Mistake(
            "--cluster kubeconfig: scenarios and benchmarks need clusters that are not used for anything else"
                .to_owned(),
        )),
    }
}
