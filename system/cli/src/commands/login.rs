//! `sindri login` and `sindri logout`: a person logs in at an OpenID Connect provider with the device authorization flow (RFC 8628).

use std::path::Path;
use std::time::Duration;

use clap::Args;
use sindri_model::text::to_printable_lines;
use tokio::time::{Instant, sleep};

use crate::failure::Failure;
use crate::file_lock::FileLock;
use crate::oidc::{DeviceAnswer, Provider};
use crate::output::print;
use crate::token_file::TokenFile;

/// Added to the interval when the provider asks for a slower pace, as the specification says.
const SLOW_DOWN: Duration = Duration::from_secs(5);
/// Longest time for which a login is awaited, also if the code is valid for longer.
const WAIT_MAX: Duration = Duration::from_secs(30 * 60);

/// Arguments of `sindri login`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// URL of the OpenID Connect provider.
    #[arg(long, env = "SINDRI_OIDC_ISSUER", value_name = "URL")]
    issuer: String,
    /// Client id of this program at the provider.
    #[arg(long, env = "SINDRI_OIDC_CLIENT_ID", value_name = "ID")]
    client_id: String,
    /// Scopes to request; `offline_access` lets the login last beyond the life of one token.
    #[arg(long, default_value = "openid offline_access", value_name = "SCOPES")]
    scope: String,
}

/// Logs in and stores the tokens, which are used for this broker only.
pub(crate) async fn run(arguments: &Arguments, broker: &str, path: &Path) -> Result<(), Failure> {
    let provider = Provider::discover(&arguments.issuer).await?;
    let device = provider.begin(&arguments.client_id, &arguments.scope).await?;
    print(&to_printable_lines(&match &device.verification_uri_complete {
        Some(complete) => format!("open {complete}\nand confirm the code {}\n", device.user_code),
        None => format!("open {}\nand enter the code {}\n", device.verification_uri, device.user_code),
    }))?;
    let end = Instant::now() + Duration::from_secs(device.expires_in).min(WAIT_MAX);
    let mut interval = Duration::from_secs(device.interval.max(1));
    while Instant::now() < end {
        sleep(interval).await;
        match provider.poll(&arguments.client_id, &device.device_code).await? {
            DeviceAnswer::Pending => {}
            DeviceAnswer::SlowDown => interval += SLOW_DOWN,
            DeviceAnswer::Tokens(tokens) => {
                let tokens = TokenFile::new(broker, &provider, &arguments.client_id, tokens)?;
                tokens.save(&FileLock::acquire(path).await?)?;
                return print(&format!("logged in at {broker}; the token is in {}\n", path.display()));
            }
        }
    }
    Err(Failure::Operation("the code has expired; run sindri login again".to_owned()))
}

/// Deletes the stored tokens.
pub(crate) async fn log_out(path: &Path) -> Result<(), Failure> {
    // A command that exchanges the tokens at the same time would store new ones.
    let _lock = if path.exists() { Some(FileLock::acquire(path).await?) } else { None };
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::Operation(format!("{} cannot be deleted: {error}", path.display())))
        }
        _ => print("logged out\n"),
    }
}
