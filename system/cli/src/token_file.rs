//! The file with the tokens of a person, which only its owner can read.

use std::fs::{OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::oidc::{Provider, Tokens};

/// Seconds before its end at which a token is replaced.
const MARGIN_SECONDS: i64 = 30;

/// Content of the file.
#[derive(Deserialize, Serialize)]
pub(crate) struct TokenFile {
    issuer: String,
    client_id: String,
    token_endpoint: String,
    /// Token that the broker verifies.
    id_token: String,
    /// Token for the next ones, if the provider has issued one.
    refresh_token: Option<String>,
}

#[derive(Deserialize)]
struct Expiry {
    exp: f64,
}

impl TokenFile {
    /// Creates the content from the tokens of a login.
    pub(crate) fn new(provider: &Provider, client_id: &str, tokens: Tokens) -> Result<Self, Failure> {
        let missing = || Failure::Usage("the provider has issued no ID token: request the scope openid".to_owned());
        Ok(Self {
            issuer: provider.issuer.clone(),
            client_id: client_id.to_owned(),
            token_endpoint: provider.token_endpoint.clone(),
            id_token: tokens.id_token.ok_or_else(missing)?,
            refresh_token: tokens.refresh_token,
        })
    }

    /// Reads the file; `None` if there is none.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, Failure> {
        let to_failure = |reason: String| Failure::Usage(format!("the token file {}: {reason}", path.display()));
        let mode = match std::fs::metadata(path) {
            Ok(metadata) => metadata.permissions().mode(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(to_failure(error.to_string())),
        };
        if mode & 0o077 != 0 {
            return Err(to_failure(format!("other users may read or write it (mode {:03o})", mode & 0o777)));
        }
        let text = std::fs::read(path).map_err(|error| to_failure(error.to_string()))?;
        let parsed = serde_json::from_slice(&text);
        parsed.map(Some).map_err(|_| to_failure("it is damaged; run sindri login again".to_owned()))
    }

    /// Writes the file, readable by its owner only, in place of the one before.
    pub(crate) fn save(&self, path: &Path) -> Result<(), Failure> {
        let to_failure = |error| Failure::Operation(format!("the token file {}: {error}", path.display()));
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".{}", std::process::id()));
        let draft = PathBuf::from(draft);
        let write = || {
            if let Some(directory) = path.parent() {
                std::fs::create_dir_all(directory)?;
            }
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
            file.set_permissions(Permissions::from_mode(0o600))?;
            file.write_all(&serde_json::to_vec(self).map_err(std::io::Error::other)?)?;
            std::fs::rename(&draft, path)
        };
        write().map_err(to_failure)
    }

    /// Returns the token for the broker, and replaces it before if it has expired.
    pub(crate) async fn current_token(mut self, path: &Path, now: i64) -> Result<String, Failure> {
        let ends = read_end(&self.id_token);
        if ends.is_some_and(|end| end - MARGIN_SECONDS > now) {
            return Ok(self.id_token);
        }
        let Some(refresh_token) = &self.refresh_token else {
            return Err(Failure::Usage("the login has ended: run sindri login again".to_owned()));
        };
        let provider = Provider::known(&self.issuer, &self.token_endpoint)?;
        let tokens = provider.refresh(&self.client_id, refresh_token).await?;
        // A provider may keep the refresh token, and then it sends none.
        self.refresh_token = tokens.refresh_token.or(self.refresh_token);
        let missing = || Failure::Usage("the login has ended: run sindri login again".to_owned());
        self.id_token = tokens.id_token.ok_or_else(missing)?;
        self.save(path)?;
        Ok(self.id_token)
    }
}

/// Returns the end of a token, in seconds since 1970. The broker verifies the token; here it is only read.
fn read_end(token: &str) -> Option<i64> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let Expiry { exp } = serde_json::from_slice(&claims).ok()?;
    Some(exp as i64)
}
