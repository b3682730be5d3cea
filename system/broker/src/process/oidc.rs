//! The provider of people's tokens, from the settings.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use sindri_broker::{Broker, FetchDocument, OidcProvider, OidcSettings};
use sindri_client::{BoundedHttp, Limits};
use sindri_process::Config;

use super::settings;
use super::start_error::StartError;

/// Limits of a document of the provider.
const LIMITS: Limits = Limits { deadline: Duration::from_secs(5), response_bytes_max: 256 * 1024 };

/// Accepts the tokens of the configured provider, if there is one.
pub fn with_oidc(config: &Config, broker: Broker) -> Result<Broker, StartError> {
    let Some((issuer, audience)) = config.get(&settings::OIDC_ISSUER).zip(config.get(&settings::OIDC_AUDIENCE)) else {
        return Ok(broker);
    };
    let values = |setting| {
        let values = config.text(setting).split(',').map(str::trim).filter(|value| !value.is_empty());
        values.map(str::to_owned).collect()
    };
    let oidc = OidcSettings {
        issuer: issuer.to_owned(),
        audience: audience.to_owned(),
        role_claim: config.text(&settings::OIDC_ROLE_CLAIM).to_owned(),
        admin_values: values(&settings::OIDC_ADMIN_ROLES),
        reader_values: values(&settings::OIDC_READER_ROLES),
    };
    Ok(broker.with_oidc(OidcProvider::new(oidc, fetch_documents(issuer)?)))
}

fn fetch_documents(issuer: &str) -> Result<FetchDocument, StartError> {
    let http = BoundedHttp::new(issuer, LIMITS).map_err(StartError::Oidc)?;
    Ok(Arc::new(move |uri| {
        let http = http.clone();
        Box::pin(async move {
            let mut request = Request::new(Bytes::new());
            *request.uri_mut() = uri;
            let response = http.send(request).await?;
            match response.status() {
                StatusCode::OK => Ok(response.into_body()),
                status => Err(format!("status {status}")),
            }
        })
    }))
}
