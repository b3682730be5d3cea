//! What the settings stand for, as it is handed in to the library.

use std::path::Path;
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::HttpConnector;
use kube::config::{KubeConfigOptions, Kubeconfig};
use sindri_agent::{Brake, DriftMode, Settings};
use sindri_client::{Client, ClientSetupError, Trust, TrustError, encrypted};
use sindri_process::{Config, ConfigError};
use thiserror::Error;

use super::access_key::{self, KeyError};
use super::settings as names;

/// The settings do not lead to a broker or a cluster.
#[derive(Debug, Error)]
pub enum HandedError {
    /// A setting is wrong or missing.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The address or the key cannot be used.
    #[error(transparent)]
    Client(#[from] ClientSetupError),
    /// Nobody's certificate can be believed.
    #[error("{0}; name those that may issue the broker's with --broker-ca-file")]
    Trust(TrustError),
    /// The authorities cannot be read.
    #[error("the authorities {path}: {reason}")]
    Authorities {
        /// Of the file.
        path: String,
        /// Why.
        reason: String,
    },
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig {path}: {reason}")]
    Kubeconfig {
        /// Of the file.
        path: String,
        /// Why, in one line.
        reason: String,
    },
    /// There is no cluster.
    #[error("no kubeconfig was named with --kubeconfig, and this is no pod: {0}")]
    NoCluster(String),
}

/// How the agent runs.
pub fn settings(config: &Config) -> Result<Settings, ConfigError> {
    let name = config.need(&names::NAME)?.to_owned();
    let cluster_name = config.need(&names::CLUSTER_NAME)?.to_owned();
    let percent = config.count(&names::BRAKE_PERCENT);
    Ok(Settings {
        polling_interval: Duration::from_secs(config.count(&names::POLLING_INTERVAL) as u64),
        namespace: config.get(&names::NAMESPACE).map(str::to_owned),
        drift: match config.text(&names::DRIFT) {
            "off" => DriftMode::Off,
            "detect" => DriftMode::Detect,
            _ => DriftMode::Correct,
        },
        brake: Brake {
            is_on: config.is_on(&names::BRAKE_ENABLED),
            objects: config.count(&names::BRAKE_OBJECTS),
            percent: u8::try_from(percent).expect("the setting is at most 100"),
        },
        lease: config.is_on(&names::LEASE),
        ..Settings::new(name, cluster_name)
    })
}

/// A client of the broker, encrypted where its address says so.
pub fn broker(config: &Config, connector: HttpConnector) -> Result<Client, HandedError> {
    let url = config.need(&names::BROKER_URL)?;
    let url: Uri = url.parse().map_err(|_| ClientSetupError::Address(names::BROKER_URL.shown(url)))?;
    let key = access_key::key(config)?;
    if url.scheme() != Some(&Scheme::HTTPS) {
        return Ok(Client::new(connector, url, &key)?);
    }
    let trust = trust(config.path(&names::BROKER_CA_FILE))?;
    Ok(Client::new(encrypted(connector, &trust), url, &key)?)
}

fn trust(authorities: Option<&Path>) -> Result<Trust, HandedError> {
    let Some(path) = authorities else { return Trust::system().map_err(HandedError::Trust) };
    let fault = |reason: String| HandedError::Authorities { path: path.display().to_string(), reason };
    let certificates = std::fs::read(path).map_err(|error| fault(error.to_string()))?;
    Trust::authorities(&certificates).map_err(|error| fault(error.to_string()))
}

/// The cluster that the settings name, or the one that this pod is in.
pub async fn cluster(config: &Config) -> Result<kube::Config, HandedError> {
    let Some(path) = config.path(&names::KUBECONFIG) else {
        return kube::Config::incluster().map_err(|error| HandedError::NoCluster(one_line(&error)));
    };
    let fault = |reason| HandedError::Kubeconfig { path: path.display().to_string(), reason };
    let parsed = Kubeconfig::read_from(path).map_err(|error| fault(one_line(&error)))?;
    let options = KubeConfigOptions { context: config.get(&names::CONTEXT).map(str::to_owned), ..Default::default() };
    kube::Config::from_custom_kubeconfig(parsed, &options).await.map_err(|error| fault(one_line(&error)))
}

fn one_line(error: &dyn std::error::Error) -> String {
    error.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" ")
}
