//! Settings that are read again while the broker runs, after SIGHUP or a request of an administrator.

use std::convert::Infallible;
use std::ffi::OsString;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sindri_broker::{Broker, LiveSettings, Quotas, Retention};
use sindri_model::wire::ConfigChange;
use sindri_process::{Config, ConfigError, Setting, Startup};
use tokio::signal::unix::Signal;

use super::settings;
use super::tls_files::TlsPair;

/// Settings that take effect without a restart.
const LIVE: [&Setting; 7] = [
    &settings::RETENTION_EVENTS_DAYS,
    &settings::RETENTION_AUDIT_DAYS,
    &settings::RETENTION_REVISIONS_DAYS,
    &settings::QUOTAS_STACKS,
    &settings::QUOTAS_REVISION_BYTES,
    &settings::QUOTAS_SUBMISSIONS_PER_MINUTE,
    &settings::QUOTAS_REQUESTS_PER_MINUTE,
];

/// Reads the settings that can change while the broker runs.
pub fn read_live_settings(config: &Config) -> LiveSettings {
    let limit = |setting| Some(config.count(setting) as u64).filter(|limit| *limit > 0);
    let rate = |setting| limit(setting).map(|limit| u32::try_from(limit).unwrap_or(u32::MAX));
    let days = |setting| limit(setting).map(|days| Duration::from_secs(days * 24 * 60 * 60));
    LiveSettings {
        retention: Retention {
            events: days(&settings::RETENTION_EVENTS_DAYS),
            audit: days(&settings::RETENTION_AUDIT_DAYS),
            revisions: days(&settings::RETENTION_REVISIONS_DAYS),
        },
        quotas: Quotas {
            stacks: limit(&settings::QUOTAS_STACKS),
            revision_bytes: limit(&settings::QUOTAS_REVISION_BYTES),
            submissions_per_minute: rate(&settings::QUOTAS_SUBMISSIONS_PER_MINUTE),
            requests_per_minute: rate(&settings::QUOTAS_REQUESTS_PER_MINUTE),
        },
    }
}

/// The settings in use, and the sources from which they are read again.
pub struct Reloader {
    /// Arguments of the process: the file may change, the arguments and the environment do not.
    arguments: Vec<OsString>,
    /// Settings at the start.
    started: Config,
    /// Settings whose live part is in use.
    applied: Mutex<Config>,
    tls: Option<TlsPair>,
}

impl Reloader {
    /// Reads the settings of a process that is starting.
    pub fn new(arguments: Vec<OsString>, tls: Option<TlsPair>) -> Result<Self, ConfigError> {
        let (started, applied) = (read(&arguments)?, Mutex::new(read(&arguments)?));
        Ok(Self { arguments, started, applied, tls })
    }

    /// Reads the settings and the certificate again, replaces those in use where that is possible, and returns the changes. If
    /// one is invalid, nothing changes.
    pub fn reload(&self, broker: &Broker) -> Result<Vec<ConfigChange>, String> {
        // Before the file is read: of two requests the one that reads the newer file is the last that changes the settings.
        let mut applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        let config = read(&self.arguments).map_err(|error| error.to_string())?;
        if let Some(tls) = &self.tls {
            tls.reload().map_err(|error| error.to_string())?;
        }
        let compare = |setting: &&Setting| {
            let is_live = LIVE.iter().any(|live| live.key == setting.key);
            compare(if is_live { &applied } else { &self.started }, &config, setting, is_live)
        };
        let changes = settings::PROGRAM.settings.iter().filter_map(compare).collect();
        broker.replace_live_settings(read_live_settings(&config));
        *applied = config;
        Ok(changes)
    }
}

fn read(arguments: &[OsString]) -> Result<Config, ConfigError> {
    match Startup::read(&settings::PROGRAM, arguments.to_vec(), std::env::vars_os())? {
        Startup::Run { config, .. } => Ok(config),
        Startup::Print(text) => Err(ConfigError::Flags(text)),
    }
}

fn compare(before: &Config, now: &Config, setting: &Setting, is_live: bool) -> Option<ConfigChange> {
    let (old, new) = (before.get(setting), now.get(setting));
    let redact = |text: Option<&str>| text.map(|text| setting.redact(text));
    (old != new).then(|| ConfigChange {
        key: setting.key.to_owned(),
        old_value: redact(old),
        new_value: redact(new),
        applied: is_live,
    })
}

/// Reloads the settings after each SIGHUP.
pub async fn reload_after_hangups(mut hangups: Signal, broker: Broker) -> Infallible {
    loop {
        hangups.recv().await;
        match broker.reload() {
            Some(Ok(changes)) => {
                for change in &changes {
                    let (old, new) = (change.old_value.as_deref(), change.new_value.as_deref());
                    tracing::info!(setting = change.key, old, new, applied = change.applied, "a setting has changed");
                }
                tracing::info!(changes = changes.len(), "the settings were read again");
            }
            Some(Err(error)) => tracing::error!(%error, "the settings were not reloaded"),
            None => {}
        }
    }
}
