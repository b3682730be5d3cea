//! Webhooks of the process: the encryption key of their secrets, and the addresses that are allowed.

use std::path::Path;

use sindri_broker::{Broker, BundleCipher, EncryptionKey, Sender, TargetPolicy, WebhookSettings, system_connector};
use sindri_process::Config;

use super::start_error::StartError;
use super::{key, settings};

/// Adds the settings of webhooks if there is an encryption key, and checks that it decrypts the stored secrets.
pub async fn with_webhooks(config: &Config, broker: Broker) -> Result<Broker, StartError> {
    let allow_private = config.is_on(&settings::WEBHOOKS_ALLOW_PRIVATE_TARGETS);
    let broker = match read_encryption_key(config)? {
        Some(key) => {
            let policy = TargetPolicy { allow_http: allow_private, allow_private };
            let encrypts_new = config.is_on(&settings::DATABASE_ENCRYPT_BUNDLES);
            let broker = broker.with_bundle_cipher(BundleCipher::new(key.clone(), encrypts_new));
            broker.with_webhooks(WebhookSettings { key, policy, sender: Sender::new(system_connector(policy)) })
        }
        None if config.is_on(&settings::DATABASE_ENCRYPT_BUNDLES) => return Err(StartError::NoBundleKey),
        None => broker,
    };
    let redacted_url = settings::DATABASE_URL.redact(config.text(&settings::DATABASE_URL));
    let checked = broker.check_encryption_key().await;
    checked
        .map_err(|source| StartError::Store { database: redacted_url, source })?
        .map_err(StartError::UndecryptableWebhook)?;
    Ok(broker)
}

/// Checks that the key decrypts the stored bundles.
pub async fn check_bundles(config: &Config, broker: &Broker) -> Result<(), StartError> {
    let database = settings::DATABASE_URL.redact(config.text(&settings::DATABASE_URL));
    let checked = broker.check_bundle_cipher().await.map_err(|source| StartError::Store { database, source })?;
    checked.map_err(StartError::UndecryptableBundle)
}

/// Returns the cipher that decrypts stored bundles, if there is a key.
pub fn read_bundle_cipher(config: &Config) -> Result<Option<BundleCipher>, StartError> {
    Ok(read_encryption_key(config)?.map(|key| BundleCipher::new(key, false)))
}

fn read_encryption_key(config: &Config) -> Result<Option<EncryptionKey>, StartError> {
    if let Some(path) = config.path(&settings::WEBHOOKS_ENCRYPTION_KEY_FILE) {
        return read_encryption_key_file(path).map(Some);
    }
    let text = config.get(&settings::WEBHOOKS_ENCRYPTION_KEY);
    text.map(|text| EncryptionKey::parse(text.trim())).transpose().map_err(StartError::EncryptionKey)
}

/// Reads a file with an encryption key, which other users must not be able to change.
pub fn read_encryption_key_file(path: &Path) -> Result<EncryptionKey, StartError> {
    let text = key::check_permissions(path).and_then(|()| std::fs::read_to_string(path));
    let text = text.map_err(|source| StartError::EncryptionKeyFile { path: path.display().to_string(), source })?;
    EncryptionKey::parse(text.trim()).map_err(StartError::EncryptionKey)
}
