//! The client of the broker and standard output, with which commands work. A command that runs for long keeps its login.

use std::path::PathBuf;

use jiff::Timestamp;
use sindri_client::Client;

use crate::failure::Failure;
use crate::output::Output;
use crate::token_file::TokenFile;

/// A login whose token the client uses.
#[derive(Debug)]
pub(crate) struct Login {
    /// File with the tokens.
    pub path: PathBuf,
    pub clock: fn() -> Timestamp,
}

/// Client of the broker, and standard output.
#[derive(Debug)]
pub(crate) struct Session {
    pub client: Client,
    /// URL of the broker.
    pub broker: String,
    /// Name of the context, if its broker is used.
    pub context: Option<String>,
    pub output: Output,
    /// `None` if the command uses an access key.
    pub login: Option<Login>,
}

impl Session {
    /// Describes the broker and its context, for questions.
    pub(crate) fn describe_place(&self) -> String {
        match &self.context {
            Some(context) => format!("context {context}, broker {}", self.broker),
            None => format!("broker {}", self.broker),
        }
    }

    /// Replaces the token of a login that ends soon, between the requests of a command that runs for long.
    pub(crate) async fn refresh_login(&self) -> Result<(), Failure> {
        let Some(Login { path, clock }) = &self.login else { return Ok(()) };
        if let Some(token) = TokenFile::current_token(path, &self.broker, clock().as_second()).await? {
            self.client.replace_key(&token)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use hyper_util::client::legacy::connect::HttpConnector;
    use serde_json::json;

    use super::*;
    use crate::output::{Format, Terminal};

    /// A token that ends in the year 2100.
    const TOKEN: &str = "e30.eyJleHAiOjQxMDI0NDQ4MDB9.c2lnbmVk";

    fn session(login: Option<Login>) -> Session {
        let broker = "http://127.0.0.1:9".to_owned();
        let client = Client::new(HttpConnector::new(), broker.parse().unwrap(), "old").unwrap();
        let terminal = Terminal { width: None, has_colors: false };
        let output = Output { format: Format::Table, terminal, error_terminal: terminal, now: Timestamp::UNIX_EPOCH };
        Session { client, broker, context: None, output, login }
    }

    #[tokio::test]
    async fn a_client_gets_the_token_that_another_command_has_renewed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token.json");
        let session = session(Some(Login { path: path.clone(), clock: || Timestamp::UNIX_EPOCH }));
        session.refresh_login().await.unwrap();
        assert!(!session.client.replace_key("old").unwrap(), "there is no token");
        let tokens = json!({"broker": session.broker, "issuer": "https://id.example", "client_id": "sindri",
            "token_endpoint": "https://id.example/token", "id_token": TOKEN, "refresh_token": null});
        std::fs::write(&path, tokens.to_string()).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        session.refresh_login().await.unwrap();
        assert!(!session.client.replace_key(TOKEN).unwrap(), "the client uses the token");
    }

    #[tokio::test]
    async fn an_access_key_stays() {
        let session = session(None);
        session.refresh_login().await.unwrap();
        assert!(!session.client.replace_key("old").unwrap());
    }
}
