//! Commands of the broker program that end when they are done.

use std::path::Path;

use clap::ArgMatches;
use sindri_broker::{BackupSummary, StoreError, WriteContext, back_up_sqlite, restore_sqlite};
use sindri_process::Config;

use super::database::{sqlite_path, start_broker};
use super::start_error::StartError;
use super::system::{system_clock, system_entropy};
use super::webhooks::{read_bundle_cipher, read_encryption_key_file, with_webhooks};
use super::{key, settings};

const NO_BACKUP_OF_POSTGRES: &str = "the database is PostgreSQL: back it up with pg_dump, restore it with pg_restore while \
     no broker runs, and then run sindri-broker restore-epoch";

/// Runs a command of [`settings::PROGRAM`].
pub async fn run(config: &Config, name: &str, arguments: &ArgMatches) -> Result<(), StartError> {
    let text = |argument: &str| arguments.get_one::<String>(argument).map(String::as_str).unwrap_or_default();
    if name != settings::BACKUP && name != settings::RESTORE {
        require_database(config)?;
    }
    match name {
        settings::BACKUP => back_up(config, text(settings::FILE)),
        settings::RESTORE => restore(config, text(settings::FILE), arguments.get_flag(settings::OVERWRITE)).await,
        settings::CREATE_ADMIN => create_admin(config, text(settings::NAME), text(settings::NEW_KEY_FILE)).await,
        settings::ROTATE_ENCRYPTION_KEY => rotate_encryption_key(config, text(settings::NEW_KEY_FILE)).await,
        _ => begin_epoch(config).await,
    }
}

/// Fails if there is no SQLite database: a broker would create one, and the operator would not notice a wrong path.
fn require_database(config: &Config) -> Result<(), StartError> {
    match sqlite_path(config) {
        Some(path) if std::fs::metadata(path).map_or(0, |file| file.len()) == 0 => {
            Err(StartError::NoDatabase(path.to_owned()))
        }
        _ => Ok(()),
    }
}

/// Writes a backup of the database to a file, also while a broker uses the database.
fn back_up(config: &Config, file: &str) -> Result<(), StartError> {
    let database = sqlite_path(config).ok_or(StartError::WrongDatabase(NO_BACKUP_OF_POSTGRES))?;
    let summary = back_up_sqlite(database, file, read_bundle_cipher(config)?.as_ref())?;
    let (epoch, latest) = (summary.position.epoch, summary.position.latest);
    println!("{file}: {} revisions, epoch {epoch}, number {latest}; checked", summary.revisions);
    print_unchecked(&summary);
    Ok(())
}

/// Restores a backup to the configured database.
async fn restore(config: &Config, file: &str, may_overwrite: bool) -> Result<(), StartError> {
    let database = sqlite_path(config).ok_or(StartError::WrongDatabase(NO_BACKUP_OF_POSTGRES))?;
    let context = WriteContext::system(system_clock().now(), system_entropy());
    let cipher = read_bundle_cipher(config)?;
    let summary = restore_sqlite(file, database, may_overwrite, cipher.as_ref(), context).await?;
    println!("{database}: {} revisions; epoch {} begins", summary.revisions, summary.position.epoch);
    print_unchecked(&summary);
    Ok(())
}

fn print_unchecked(summary: &BackupSummary) {
    if summary.unchecked > 0 {
        println!("{} encrypted bundles were not checked: no encryption key is set", summary.unchecked);
    }
}

/// Begins a new epoch after the operator has restored the database: later submissions have higher sequences than all
/// earlier ones.
async fn begin_epoch(config: &Config) -> Result<(), StartError> {
    let started = start_broker(config, &system_entropy()).await?;
    let recorded = started.broker.record_restore("an operator recorded a restore".to_owned()).await;
    let epoch = recorded.map_err(|source| store_error(config, source))?;
    drop(started.broker);
    started.database.await_closed().await;
    println!("epoch {epoch} begins");
    Ok(())
}

/// Encrypts the stored secrets of webhooks with another key.
async fn rotate_encryption_key(config: &Config, new_key_file: &str) -> Result<(), StartError> {
    let key = read_encryption_key_file(Path::new(new_key_file))?;
    let started = start_broker(config, &system_entropy()).await?;
    let broker = with_webhooks(config, started.broker).await?;
    if !broker.has_encryption_key() {
        return Err(StartError::NoEncryptionKey);
    }
    let rotated = broker.rotate_encryption_key(key).await.map_err(|source| store_error(config, source))?;
    drop(broker);
    started.database.await_closed().await;
    let (webhooks, bundles) = (rotated.webhooks, rotated.bundles);
    println!("the secrets of {webhooks} webhooks and {bundles} bundles are encrypted with the key in {new_key_file}");
    Ok(())
}

/// Creates an administrator, for whom the key of no other one is needed.
async fn create_admin(config: &Config, name: &str, key_file: &str) -> Result<(), StartError> {
    let entropy = system_entropy();
    let started = start_broker(config, &entropy).await?;
    let created = key::create_admin_with_key(&started.broker, name, key_file, &entropy).await;
    drop(started.broker);
    started.database.await_closed().await;
    Ok(created?)
}

fn store_error(config: &Config, source: StoreError) -> StartError {
    StartError::Store { database: settings::DATABASE_URL.redact(config.text(&settings::DATABASE_URL)), source }
}
