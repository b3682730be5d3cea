//! Creates the client of the broker.

use std::path::{Path, PathBuf};

use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::HttpConnector;
use sindri_client::{Client, Trust, with_tls};

use crate::failure::Failure;
use crate::private_file;
use crate::settings::{Credential, Settings};
use crate::token_file::TokenFile;

/// Creates a client with the credential of the settings. People want to know that a broker is older than this program, so
/// it rejects fields that it does not know.
pub(crate) async fn create_client(settings: &Settings, now_seconds: i64) -> Result<Client, Failure> {
    let credential = read_credential(settings, now_seconds).await?;
    if credential.trim().is_empty() {
        return Err(Failure::Usage("the access key is empty: check SINDRI_KEY and the key file".to_owned()));
    }
    Ok(create_client_without_key(settings)?.with_key(&credential)?.with_strict_requests())
}

/// Creates a client for operations that need no key. The trusted authorities of the machine are loaded for https only.
pub(crate) fn create_client_without_key(settings: &Settings) -> Result<Client, Failure> {
    let base_url = parse_url(&settings.broker)?;
    let mut connector = HttpConnector::new();
    // Disables Nagle's algorithm, which delays the last packet of a bundle until the previous ones are acknowledged.
    connector.set_nodelay(true);
    if base_url.scheme() != Some(&Scheme::HTTPS) {
        return Ok(Client::without_key(connector, base_url)?);
    }
    connector.enforce_http(false);
    Ok(Client::without_key(with_tls(connector, &load_trust(settings.broker_ca_file.as_deref())?), base_url)?)
}

/// Parses the URL of a broker.
pub(crate) fn parse_url(broker: &str) -> Result<Uri, Failure> {
    let is_complete = |url: &Uri| {
        [Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&url.scheme())
            && url.host().is_some_and(|host| !host.is_empty())
    };
    let url = broker.parse().ok().filter(is_complete);
    url.ok_or_else(|| Failure::Usage(format!("{broker:?} is not the URL of a broker, which is like https://HOST:PORT")))
}

/// Loads the trusted certificate authorities.
fn load_trust(ca_file: Option<&Path>) -> Result<Trust, Failure> {
    let trust = match ca_file {
        None => Trust::from_system(),
        Some(path) => Trust::from_pem(&read_file("file of certificate authorities", path)?),
    };
    trust.map_err(|error| Failure::Usage(error.to_string()))
}

/// Returns the access key or the token of the login.
async fn read_credential(settings: &Settings, now_seconds: i64) -> Result<String, Failure> {
    match &settings.credential {
        Credential::Key(key) => Ok(key.0.clone()),
        Credential::KeyFile(path) => read_key_file(path),
        Credential::Login => {
            let missing =
                "an access key is required: set --key-file or SINDRI_KEY, or use sindri login or sindri context";
            let token = TokenFile::current_token(&token_path(settings)?, &settings.broker, now_seconds).await?;
            token.ok_or_else(|| Failure::Usage(missing.to_owned()))
        }
        Credential::Missing(reason) => Err(Failure::Usage(reason.clone())),
    }
}

/// Reads an access key from a file.
pub(crate) fn read_key_file(path: &Path) -> Result<String, Failure> {
    let content = read_file("key file", path)?;
    String::from_utf8(content).map_err(|_| Failure::Usage(format!("the key file {} is not UTF-8", path.display())))
}

fn read_file(noun: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    let to_usage = |reason: String| Failure::Usage(format!("the {noun} {} cannot be read: {reason}", path.display()));
    let content = private_file::read(path).map_err(|error| to_usage(error.to_string()))?;
    content.ok_or_else(|| to_usage("there is no such file".to_owned()))
}

/// Returns the file in which a login stores its tokens.
pub(crate) fn token_path(settings: &Settings) -> Result<PathBuf, Failure> {
    let missing =
        || Failure::Usage("there is no home directory: set --token-file, --key-file or SINDRI_KEY".to_owned());
    settings.token_file.clone().ok_or_else(missing)
}
