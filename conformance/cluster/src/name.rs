//! Names of the providers of clusters, as `--cluster` takes them.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// All names, in the order in which they are listed.
const ALL: [ProviderName; 5] =
    [ProviderName::Sim, ProviderName::Local, ProviderName::Container, ProviderName::Kind, ProviderName::Kubeconfig];

/// Name of a provider of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderName {
    /// The simulated API server on a real port.
    Sim,
    /// The real control plane, built on this machine.
    Local,
    /// A control plane in a container.
    Container,
    /// A kind cluster.
    Kind,
    /// An existing cluster.
    Kubeconfig,
}

/// No provider has this name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("--cluster takes {names}, not {0:?}", names = ALL.map(|provider| provider.to_string()).join(", "))]
pub struct UnknownProvider(String);

impl fmt::Display for ProviderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sim => "sim",
            Self::Local => "local",
            Self::Container => "container",
            Self::Kind => "kind",
            Self::Kubeconfig => "kubeconfig",
        })
    }
}

impl FromStr for ProviderName {
    type Err = UnknownProvider;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = ALL.into_iter().find(|provider| provider.to_string() == text);
        found.ok_or_else(|| UnknownProvider(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_is_parsed_from_its_displayed_name() {
        for provider in ALL {
            assert_eq!(provider.to_string().parse(), Ok(provider));
        }
        let message = "minikube".parse::<ProviderName>().unwrap_err().to_string();
        assert_eq!(message, "--cluster takes sim, local, container, kind, kubeconfig, not \"minikube\"");
    }
}
