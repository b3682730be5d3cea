//! Requests to an OpenID Connect provider: its description, the device authorization flow, and new tokens for a refresh token.

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sindri_client::{BoundedHttp, Limits, is_secure_endpoint, is_secure_url, percent_encode};

use crate::failure::Failure;

const DISCOVERY_PATH: &str = "/.well-known/openid-configuration";
const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
const LIMITS: Limits = Limits { deadline: Duration::from_secs(15), response_bytes_max: 256 * 1024 };

/// A provider.
pub(crate) struct Provider {
    http: BoundedHttp,
    pub issuer: String,
    pub token_endpoint: String,
    device_authorization_endpoint: Option<String>,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    token_endpoint: String,
    device_authorization_endpoint: Option<String>,
}

/// Answer to the request for a device code.
#[derive(Deserialize)]
pub(crate) struct DeviceCode {
    pub device_code: String,
    pub user_code: String,
    pub verification_uri: String,
    pub verification_uri_complete: Option<String>,
    pub expires_in: u64,
    #[serde(default = "default_interval")]
    pub interval: u64,
}

fn default_interval() -> u64 {
    5
}

/// Tokens of a person.
#[derive(Deserialize)]
pub(crate) struct Tokens {
    pub id_token: Option<String>,
    pub refresh_token: Option<String>,
}

/// Answer to the question whether the person has confirmed the code.
pub(crate) enum DeviceAnswer {
    Pending,
    SlowDown,
    Tokens(Tokens),
}

#[derive(Deserialize)]
struct OauthError {
    error: String,
    #[serde(default)]
    error_description: String,
}

impl Provider {
    /// Reads the description of the provider.
    pub(crate) async fn discover(issuer: &str) -> Result<Self, Failure> {
        if !is_secure_url(issuer) {
            return Err(Failure::Usage(format!("{issuer} must be an https URL: tokens are sent to it")));
        }
        let url = format!("{}{DISCOVERY_PATH}", issuer.trim_end_matches('/'));
        let http = new_http(issuer)?;
        let response = send(&http, Method::GET, &url, String::new()).await?;
        let discovery: Discovery = parse(&url, &response.1)?;
        if discovery.issuer != issuer {
            return Err(Failure::Usage(format!("{url} describes another provider: {}", discovery.issuer)));
        }
        let Discovery { issuer, token_endpoint, device_authorization_endpoint } = discovery;
        for endpoint in [Some(&token_endpoint), device_authorization_endpoint.as_ref()].into_iter().flatten() {
            check_endpoint(&issuer, endpoint)?;
        }
        Ok(Self { http, issuer, token_endpoint, device_authorization_endpoint })
    }

    /// Returns a provider whose description was read before.
    pub(crate) fn known(issuer: &str, token_endpoint: &str) -> Result<Self, Failure> {
        check_endpoint(issuer, token_endpoint)?;
        let http = new_http(token_endpoint)?;
        let (issuer, token_endpoint) = (issuer.to_owned(), token_endpoint.to_owned());
        Ok(Self { http, issuer, token_endpoint, device_authorization_endpoint: None })
    }

    /// Requests a device code.
    pub(crate) async fn begin(&self, client_id: &str, scope: &str) -> Result<DeviceCode, Failure> {
        let missing = || Failure::Usage(format!("{} does not support logins of devices", self.issuer));
        let url = self.device_authorization_endpoint.as_deref().ok_or_else(missing)?;
        let (status, body) = self.post(url, &[("client_id", client_id), ("scope", scope)]).await?;
        if status == StatusCode::OK { parse(url, &body) } else { Err(refused(url, status, &body)) }
    }

    /// Asks for the tokens of a device code.
    pub(crate) async fn poll(&self, client_id: &str, device_code: &str) -> Result<DeviceAnswer, Failure> {
        let form = [("grant_type", DEVICE_GRANT), ("device_code", device_code), ("client_id", client_id)];
        let (status, body) = self.post(&self.token_endpoint, &form).await?;
        if status == StatusCode::OK {
            return parse(&self.token_endpoint, &body).map(DeviceAnswer::Tokens);
        }
        match serde_json::from_slice::<OauthError>(&body).map(|error| error.error).as_deref() {
            Ok("authorization_pending") => Ok(DeviceAnswer::Pending),
            Ok("slow_down") => Ok(DeviceAnswer::SlowDown),
            _ => Err(refused(&self.token_endpoint, status, &body)),
        }
    }

    /// Exchanges a refresh token for new tokens.
    pub(crate) async fn refresh(&self, client_id: &str, refresh_token: &str) -> Result<Tokens, Failure> {
        let form = [("grant_type", "refresh_token"), ("refresh_token", refresh_token), ("client_id", client_id)];
        let (status, body) = self.post(&self.token_endpoint, &form).await?;
        if status == StatusCode::OK {
            return parse(&self.token_endpoint, &body);
        }
        let Failure::Usage(reason) = refused(&self.token_endpoint, status, &body) else {
            return Err(refused(&self.token_endpoint, status, &body));
        };
        Err(Failure::Usage(format!("the login has ended: run sindri login again ({reason})")))
    }

    async fn post(&self, url: &str, form: &[(&str, &str)]) -> Result<(StatusCode, Bytes), Failure> {
        let pairs = form.iter().map(|(name, value)| format!("{name}={}", percent_encode(value)));
        send(&self.http, Method::POST, url, pairs.collect::<Vec<_>>().join("&")).await
    }
}

/// Refuses an endpoint to which codes and tokens would be sent without encryption.
fn check_endpoint(issuer: &str, endpoint: &str) -> Result<(), Failure> {
    if is_secure_endpoint(issuer, endpoint) {
        return Ok(());
    }
    Err(Failure::Usage(format!("{issuer} names the endpoint {endpoint}, which is not used: it must be an https URL")))
}

fn new_http(url: &str) -> Result<BoundedHttp, Failure> {
    BoundedHttp::new(url, LIMITS).map_err(|error| Failure::Usage(error.to_string()))
}

async fn send(http: &BoundedHttp, method: Method, url: &str, body: String) -> Result<(StatusCode, Bytes), Failure> {
    let mut request = Request::new(Bytes::from(body));
    *request.method_mut() = method;
    *request.uri_mut() = url.parse().map_err(|_| Failure::Usage(format!("{url} is not a URL")))?;
    let form = HeaderValue::from_static("application/x-www-form-urlencoded");
    request.headers_mut().insert(CONTENT_TYPE, form);
    let response = http.send(request).await;
    let response = response.map_err(|error| Failure::Operation(format!("{url} cannot be reached: {error}")))?;
    Ok((response.status(), response.into_body()))
}

/// Parses an answer. The error has no part of it, because it may contain a token.
fn parse<T: DeserializeOwned>(url: &str, body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body).map_err(|_| Failure::Operation(format!("{url} did not send what was expected")))
}

fn refused(url: &str, status: StatusCode, body: &[u8]) -> Failure {
    match serde_json::from_slice::<OauthError>(body) {
        Ok(OauthError { error, error_description }) => {
            let separator = if error_description.is_empty() { "" } else { ": " };
            Failure::Usage(format!("the provider refused it: {error}{separator}{error_description}"))
        }
        Err(_) => Failure::Operation(format!("{url} responded with {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_not_sent_without_encryption() {
        assert!(Provider::known("http://127.0.0.1:1", "http://127.0.0.1:1/token").is_ok());
        for (issuer, endpoint) in [
            ("https://id.example", "http://id.example/token"),
            ("https://id.example", "http://127.0.0.1/token"),
            ("http://127.0.0.1:1", "http://id.example/token"),
        ] {
            let Err(Failure::Usage(reason)) = Provider::known(issuer, endpoint) else { panic!("{endpoint} is used") };
            assert!(reason.contains(endpoint), "{reason}");
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let Err(Failure::Usage(reason)) = runtime.block_on(Provider::discover("http://id.example")) else {
            panic!("a provider without TLS is used")
        };
        assert!(reason.contains("must be an https URL"), "{reason}");
    }
}
