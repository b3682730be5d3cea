//! Builds the agent's settings, broker client and cluster configuration from the process configuration.

use std::path::Path;
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::HttpConnector;
use kube::config::{KubeConfigOptions, Kubeconfig};
use sindri_agent::{Brake, Settings};
use sindri_client::{Client, ClientSetupError, Trust, TrustError, with_tls};
use sindri_model::policy::DriftMode;
use sindri_process::{Config, ConfigError};
use thiserror::Error;

use super::access_key::{self, KeyError};
use super::settings as names;

/// Reason why the agent cannot be set up.
#[derive(Debug, Error)]
pub enum SetupError {
    /// A setting is wrong or missing.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is no usable access key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The URL or the access key is malformed.
    #[error(transparent)]
    Client(#[from] ClientSetupError),
    /// The certificates that the machine trusts cannot be read.
    #[error("{0}; name the certificate authorities of the broker with --broker-ca-file")]
    Trust(TrustError),
    /// The file of certificate authorities cannot be used.
    #[error("the certificate authorities {path}: {reason}")]
    Authorities {
        /// Path of the file.
        path: String,
        /// Cause.
        reason: String,
    },
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig {path}: {reason}")]
    Kubeconfig {
        /// Path of the file.
        path: String,
        /// Cause, in one line.
        reason: String,
    },
    /// There is no kubeconfig, and the process does not run in a pod.
    #[error("no kubeconfig is set with --kubeconfig, and the process does not run in a pod: {0}")]
    NoCluster(String),
}

/// Reads the agent's settings.
pub fn read_settings(config: &Config) -> Result<Settings, ConfigError> {
    let name = config.require(&names::NAME)?.to_owned();
    let cluster_name = config.require(&names::CLUSTER_NAME)?.to_owned();
    let percent = config.count(&names::BRAKE_PERCENT);
    Ok(Settings {
        polling_interval: Duration::from_secs(config.count(&names::POLLING_INTERVAL) as u64),
        namespace: config.get(&names::NAMESPACE).map(str::to_owned),
        reserved_namespaces: split_list(config.get(&names::RESERVED_NAMESPACES).unwrap_or_default()),
        default_service_account: config
            .get(&names::DEFAULT_SERVICE_ACCOUNT)
            .map(|account| account.parse().expect("the setting was checked")),
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

/// Builds the client of the broker, with TLS if its URL has the scheme https.
pub fn build_broker_client(config: &Config, connector: HttpConnector) -> Result<Client, SetupError> {
    let url = config.require(&names::BROKER_URL)?;
    let url: Uri = url.parse().map_err(|_| ClientSetupError::Address(names::BROKER_URL.redact(url)))?;
    let key = access_key::read_key(config)?;
    if url.scheme() != Some(&Scheme::HTTPS) {
        return Ok(Client::new(connector, url, &key)?);
    }
    let trust = read_trust(config.path(&names::BROKER_CA_FILE))?;
    Ok(Client::new(with_tls(connector, &trust), url, &key)?)
}

fn read_trust(authorities: Option<&Path>) -> Result<Trust, SetupError> {
    let Some(path) = authorities else { return Trust::from_system().map_err(SetupError::Trust) };
    let to_error = |reason: String| SetupError::Authorities { path: path.display().to_string(), reason };
    let certificates = std::fs::read(path).map_err(|error| to_error(error.to_string()))?;
    Trust::from_pem(&certificates).map_err(|error| to_error(error.to_string()))
}

/// Returns the configuration of the cluster that the settings name, or of the one that this pod runs in.
pub async fn read_cluster_config(config: &Config) -> Result<kube::Config, SetupError> {
    let Some(path) = config.path(&names::KUBECONFIG) else {
        return kube::Config::incluster().map_err(|error| SetupError::NoCluster(to_one_line(&error)));
    };
    let to_error = |reason| SetupError::Kubeconfig { path: path.display().to_string(), reason };
    let parsed = Kubeconfig::read_from(path).map_err(|error| to_error(to_one_line(&error)))?;
    let options = KubeConfigOptions { context: config.get(&names::CONTEXT).map(str::to_owned), ..Default::default() };
    kube::Config::from_custom_kubeconfig(parsed, &options).await.map_err(|error| to_error(to_one_line(&error)))
}

fn to_one_line(error: &dyn std::error::Error) -> String {
    error.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" ")
}
/// Splits a list at its commas.
fn split_list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}
