//! The file with the tokens of a person, which only its owner can read.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::file_lock::FileLock;
use crate::flags::is_same_broker;
use crate::oidc::{Provider, Tokens};
use crate::private_file;

/// Seconds before its end at which a token is replaced.
const MARGIN_SECONDS: i64 = 30;

/// Content of the file.
#[derive(Deserialize, Serialize)]
pub(crate) struct TokenFile {
    /// URL of the broker for which the login was made; `None` in a file of an earlier version.
    #[serde(default)]
    broker: Option<String>,
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
    pub(crate) fn new(broker: &str, provider: &Provider, client_id: &str, tokens: Tokens) -> Result<Self, Failure> {
        let missing = || Failure::Usage("the provider has issued no ID token: request the scope openid".to_owned());
        Ok(Self {
            broker: Some(broker.to_owned()),
            issuer: provider.issuer.clone(),
            client_id: client_id.to_owned(),
            token_endpoint: provider.token_endpoint.clone(),
            id_token: tokens.id_token.ok_or_else(missing)?,
            refresh_token: tokens.refresh_token,
        })
    }

    /// Reads the file; `None` if there is none.
    fn read(path: &Path) -> Result<Option<Self>, Failure> {
        let to_failure = |reason: String| Failure::Usage(format!("the token file {}: {reason}", path.display()));
        private_file::check_mode(path).map_err(|error| to_failure(error.to_string()))?;
        let Some(text) = private_file::read(path).map_err(|error| to_failure(error.to_string()))? else {
            return Ok(None);
        };
        let parsed = serde_json::from_slice(&text);
        parsed.map(Some).map_err(|_| to_failure("it is damaged; run sindri login again".to_owned()))
    }

    /// Reads the file, and refuses it for another broker than that of the login.
    fn read_for(path: &Path, broker: &str) -> Result<Option<Self>, Failure> {
        let Some(file) = Self::read(path)? else { return Ok(None) };
        let reason = match &file.broker {
            Some(own) if is_same_broker(own, broker) => return Ok(Some(file)),
            Some(own) => format!("is for {own}, and not for {broker}"),
            None => "does not say for which broker it is".to_owned(),
        };
        let path = path.display();
        Err(Failure::Usage(format!(
            "the login in {path} {reason}: run sindri login with this --broker, or set --key-file"
        )))
    }

    /// Writes the file, readable by its owner only, in place of the one before.
    pub(crate) fn save(&self, lock: &FileLock) -> Result<(), Failure> {
        let to_failure =
            |reason: String| Failure::Operation(format!("the token file {}: {reason}", lock.path().display()));
        let content = serde_json::to_vec(self).map_err(|error| to_failure(error.to_string()))?;
        private_file::replace(lock, &content).map_err(|error| to_failure(error.to_string()))
    }

    /// Returns the token for this broker, and replaces it before if it has expired; `None` if there is no file. The token of a
    /// login is for the broker of the login: another one could use it there.
    pub(crate) async fn current_token(path: &Path, broker: &str, now: i64) -> Result<Option<String>, Failure> {
        match Self::read_for(path, broker)? {
            None => return Ok(None),
            Some(file) if file.is_current(now) => return Ok(Some(file.id_token)),
            Some(_) => {}
        }
        // A refresh token is often valid once: one command exchanges it, and those that have waited read the result.
        let lock = FileLock::acquire(path).await?;
        match Self::read_for(path, broker)? {
            None => Ok(None),
            Some(file) if file.is_current(now) => Ok(Some(file.id_token)),
            Some(file) => file.exchange(&lock).await.map(Some),
        }
    }

    fn is_current(&self, now: i64) -> bool {
        read_end(&self.id_token).is_some_and(|end| end - MARGIN_SECONDS > now)
    }

    /// Exchanges the refresh token, and returns the new token for the broker.
    async fn exchange(mut self, lock: &FileLock) -> Result<String, Failure> {
        let Some(refresh_token) = &self.refresh_token else {
            return Err(Failure::Usage("the login has ended: run sindri login again".to_owned()));
        };
        let provider = Provider::known(&self.issuer, &self.token_endpoint)?;
        let tokens = provider.refresh(&self.client_id, refresh_token).await?;
        // A provider may keep the refresh token, and then it sends none. A new one is stored in any case: the old one may be
        // invalid now.
        self.refresh_token = tokens.refresh_token.or(self.refresh_token);
        let Some(id_token) = tokens.id_token else {
            self.save(lock)?;
            return Err(Failure::Usage("the provider has issued no new ID token: run sindri login again".to_owned()));
        };
        self.id_token = id_token;
        self.save(lock)?;
        Ok(self.id_token)
    }
}

/// Returns the end of a token, in seconds since 1970. The broker verifies the token; here it is only read.
fn read_end(token: &str) -> Option<i64> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let Expiry { exp } = serde_json::from_slice(&claims).ok()?;
    Some(exp as i64)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::JoinSet;

    use super::*;
    use crate::file_lock::with_suffix;

    const NOW: i64 = 1_700_000_000;
    const BROKER: &str = "https://broker.example";

    fn id_token(end: i64) -> String {
        format!("e30.{}.a", URL_SAFE_NO_PAD.encode(json!({"exp": end}).to_string()))
    }

    /// A token endpoint that sends these answers, one per connection.
    struct Endpoint {
        url: String,
        requests: Arc<Mutex<Vec<String>>>,
        _serving: JoinSet<()>,
    }

    impl Endpoint {
        async fn start(answers: Vec<(u16, Value)>) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            let (requests, mut serving) = (Arc::new(Mutex::new(Vec::new())), JoinSet::new());
            let seen = requests.clone();
            serving.spawn(async move {
                for (status, answer) in answers {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    let form = read_body(&mut stream).await;
                    seen.lock().unwrap().push(form);
                    let answer = answer.to_string();
                    let length = answer.len();
                    let head = format!("HTTP/1.1 {status} -\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
                    stream.write_all(format!("{head}{answer}").as_bytes()).await.unwrap();
                }
            });
            Self { url, requests, _serving: serving }
        }

        /// Returns a file whose ID token has expired.
        fn expired_file(&self) -> TokenFile {
            TokenFile {
                broker: Some(BROKER.to_owned()),
                issuer: self.url.clone(),
                client_id: "sindri".to_owned(),
                token_endpoint: format!("{}/token", self.url),
                id_token: id_token(NOW - 1),
                refresh_token: Some("first".to_owned()),
            }
        }
    }

    async fn read_body(stream: &mut TcpStream) -> String {
        let mut request = Vec::new();
        loop {
            let text = String::from_utf8(request.clone()).unwrap();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                if body.len() >= length.parse::<usize>().unwrap() {
                    return body.to_owned();
                }
            }
            assert!(stream.read_buf(&mut request).await.unwrap() > 0, "the request is not whole");
        }
    }

    /// Returns the names of the files in a directory.
    fn list(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    async fn save(file: &TokenFile, directory: &Path) -> PathBuf {
        let path = directory.join("token.json");
        file.save(&FileLock::acquire(&path).await.unwrap()).unwrap();
        path
    }

    #[tokio::test]
    async fn commands_at_the_same_time_exchange_a_refresh_token_once() {
        let tokens = json!({"id_token": id_token(NOW + 300), "refresh_token": "second"});
        let endpoint = Endpoint::start(vec![(200, tokens), (400, json!({"error": "invalid_grant"}))]).await;
        let directory = tempfile::tempdir().unwrap();
        let path = save(&endpoint.expired_file(), directory.path()).await;
        let (one, other) =
            tokio::join!(TokenFile::current_token(&path, BROKER, NOW), TokenFile::current_token(&path, BROKER, NOW));
        assert_eq!((one.unwrap(), other.unwrap()), (Some(id_token(NOW + 300)), Some(id_token(NOW + 300))));
        let requests = endpoint.requests.lock().unwrap();
        assert_eq!(requests.len(), 1);
        assert!(requests[0].contains("refresh_token=first"), "{requests:?}");
        assert_eq!(TokenFile::read(&path).unwrap().unwrap().refresh_token.as_deref(), Some("second"));
    }

    #[tokio::test]
    async fn a_token_is_for_the_broker_of_its_login_and_is_not_even_exchanged_for_another() {
        let endpoint = Endpoint::start(Vec::new()).await;
        let directory = tempfile::tempdir().unwrap();
        let current = TokenFile { id_token: id_token(NOW + 300), ..endpoint.expired_file() };
        for file in [endpoint.expired_file(), current] {
            let path = save(&file, directory.path()).await;
            let refused = TokenFile::current_token(&path, "https://other.example", NOW).await.unwrap_err().to_string();
            assert!(refused.contains("is for https://broker.example, and not for https://other.example"), "{refused}");
        }
        let path = save(&TokenFile { broker: None, ..endpoint.expired_file() }, directory.path()).await;
        let refused = TokenFile::current_token(&path, BROKER, NOW).await.unwrap_err().to_string();
        assert!(refused.contains("does not say for which broker it is: run sindri login"), "{refused}");
        assert!(endpoint.requests.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_new_refresh_token_is_stored_also_without_an_id_token() {
        let endpoint = Endpoint::start(vec![(200, json!({"refresh_token": "second"}))]).await;
        let directory = tempfile::tempdir().unwrap();
        let path = save(&endpoint.expired_file(), directory.path()).await;
        TokenFile::current_token(&path, BROKER, NOW).await.unwrap_err();
        assert_eq!(TokenFile::read(&path).unwrap().unwrap().refresh_token.as_deref(), Some("second"));
    }

    #[tokio::test]
    async fn a_draft_is_a_new_file_and_does_not_stay() {
        let endpoint = Endpoint::start(Vec::new()).await;
        let directory = tempfile::tempdir().unwrap();
        let (other, path) = (directory.path().join("other"), directory.path().join("token.json"));
        std::fs::write(&other, "kept").unwrap();
        std::os::unix::fs::symlink(&other, with_suffix(&path, ".draft")).unwrap();
        save(&endpoint.expired_file(), directory.path()).await;
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "kept");
        assert_eq!(std::fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(list(directory.path()), ["other", "token.json", "token.json.lock"]);
        // A directory cannot be replaced by a file.
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        endpoint.expired_file().save(&FileLock::acquire(&path).await.unwrap()).unwrap_err();
        assert_eq!(list(directory.path()), ["other", "token.json", "token.json.lock"]);
    }
}
