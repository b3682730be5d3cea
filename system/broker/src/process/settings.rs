//! Every setting of the broker, said once.

use sindri_process::{Form, Kind, MASK, Program, Rule, Setting};

/// Where a database is; it may hold a password.
const DATABASE: Form = Form {
    placeholder: "URL",
    fits: is_database_url,
    expected: "must be like sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME",
    shown: without_password,
};

/// The command that notes a restored database.
pub const RESTORE_EPOCH: &str = "restore-epoch";

/// Where to listen.
pub const LISTEN: Setting = Setting {
    default: Some("127.0.0.1:3000"),
    ..Setting::plain("listen", "listen", Kind::Text, "Where to listen, as HOST:PORT; port 0 takes a free one")
};
/// The database.
pub const DATABASE_URL: Setting = Setting {
    default: Some("sqlite:sindri.db"),
    ..Setting::plain("database.url", "database-url", Kind::Form(&DATABASE), "The database, as sqlite:PATH")
};
/// How many connections to the database are kept.
pub const DATABASE_CONNECTIONS: Setting = Setting {
    default: Some("8"),
    ..Setting::plain(
        "database.connections",
        "database-connections",
        Kind::Count(1, 1_000),
        "How many connections to a database server are kept",
    )
};
/// The administrator's key.
pub const ADMIN_KEY_FILE: Setting = Setting {
    default: Some("sindri-admin.key"),
    ..Setting::plain(
        "admin_key_file",
        "admin-key-file",
        Kind::Path,
        "Where the administrator's key is kept: read at the first start if the file is there, else written",
    )
};
/// The certificate to show.
pub const TLS_CERTIFICATE_FILE: Setting = Setting::plain(
    "tls.certificate_file",
    "tls-certificate-file",
    Kind::Path,
    "The certificate to show, with its chain, in PEM; read again when it changes",
);
/// The key of the certificate.
pub const TLS_KEY_FILE: Setting =
    Setting::plain("tls.key_file", "tls-key-file", Kind::Path, "The key of the certificate, in PEM");
/// How to write log lines.
pub const LOG_FORM: Setting = Setting::log_form("log.form");
/// Which lines to write.
pub const LOG_LEVEL: Setting = Setting::log_level("log.level");
/// The largest body of a request.
pub const LIMITS_BODY_BYTES: Setting = Setting {
    default: Some("2097152"),
    ..Setting::plain(
        "limits.body_bytes",
        "limits-body-bytes",
        Kind::Count(1_024, 1 << 26),
        "The largest body that is accepted",
    )
};
/// The most connections.
pub const LIMITS_CONNECTIONS: Setting = Setting {
    default: Some("16384"),
    ..Setting::plain(
        "limits.connections",
        "limits-connections",
        Kind::Count(1, 1_000_000),
        "The most open connections; further ones wait",
    )
};
/// The longest wait of a poll.
pub const LIMITS_WAIT_SECONDS_MAX: Setting = Setting {
    default: Some("300"),
    ..Setting::plain(
        "limits.wait_seconds_max",
        "limits-wait-seconds-max",
        Kind::Count(0, 3_600),
        "The longest time that a poll may ask to wait for a change",
    )
};
/// How long an agent may be silent.
pub const AGENTS_OFFLINE_AFTER_SECONDS: Setting = Setting {
    default: Some("120"),
    ..Setting::plain(
        "agents.offline_after_seconds",
        "agents-offline-after-seconds",
        Kind::Count(0, 604_800),
        "How long an agent may send no heartbeat before subscribers are told; 0 tells them never",
    )
};
/// Whether webhooks may go to private addresses.
pub const WEBHOOKS_ALLOW_PRIVATE_TARGETS: Setting = Setting {
    default: Some("false"),
    ..Setting::plain(
        "webhooks.allow_private_targets",
        "webhooks-allow-private-targets",
        Kind::Switch,
        "Whether webhooks may be delivered to private addresses",
    )
};
/// Where the key for the secrets of webhooks is.
pub const WEBHOOKS_ENCRYPTION_KEY_FILE: Setting = Setting::plain(
    "webhooks.encryption_key_file",
    "webhooks-encryption-key-file",
    Kind::Path,
    "Where the key is that the secrets of webhooks are stored under",
);
/// The key itself.
pub const WEBHOOKS_ENCRYPTION_KEY: Setting =
    Setting::secret("webhooks.encryption_key", "The key that the secrets of webhooks are stored under");
/// Threads.
pub const WORKERS: Setting = Setting {
    default: Some("1"),
    ..Setting::plain("workers", "workers", Kind::Count(1, 256), "The threads that serve requests")
};

/// The broker.
pub static PROGRAM: Program = Program {
    name: "sindri-broker",
    version: env!("CARGO_PKG_VERSION"),
    about: "Keeps what every cluster should run, and tells their agents.",
    prefix: "SINDRI__BROKER__",
    section: "",
    settings: &[
        &LISTEN,
        &DATABASE_URL,
        &DATABASE_CONNECTIONS,
        &ADMIN_KEY_FILE,
        &TLS_CERTIFICATE_FILE,
        &TLS_KEY_FILE,
        &LOG_FORM,
        &LOG_LEVEL,
        &LIMITS_BODY_BYTES,
        &LIMITS_CONNECTIONS,
        &LIMITS_WAIT_SECONDS_MAX,
        &AGENTS_OFFLINE_AFTER_SECONDS,
        &WEBHOOKS_ALLOW_PRIVATE_TARGETS,
        &WEBHOOKS_ENCRYPTION_KEY_FILE,
        &WEBHOOKS_ENCRYPTION_KEY,
        &WORKERS,
    ],
    rules: &[
        Rule::Together(&TLS_CERTIFICATE_FILE, &TLS_KEY_FILE),
        Rule::OneAtMost(&WEBHOOKS_ENCRYPTION_KEY, &WEBHOOKS_ENCRYPTION_KEY_FILE),
    ],
    example: &DATABASE_URL,
    commands: || {
        let about = "Notes that the database was restored from a backup, and ends";
        vec![clap::Command::new(RESTORE_EPOCH).about(about)]
    },
};

fn is_database_url(text: &str) -> bool {
    let beginnings = ["sqlite:", "postgres://", "postgresql://"];
    beginnings.iter().any(|start| text.strip_prefix(start).is_some_and(|rest| !rest.trim_start_matches('/').is_empty()))
}

/// Masks what stands between the user's name and the last `@`, and a parameter `password`.
fn without_password(url: &str) -> String {
    let (url, parameters) = url.split_once('?').map_or((url, None), |(url, rest)| (url, Some(rest)));
    let mut shown = match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?))) {
        Some((scheme, (user, host))) => {
            let user = user.split_once(':').map_or(user.to_owned(), |(name, _)| format!("{name}:{MASK}"));
            format!("{scheme}://{user}@{host}")
        }
        None => url.to_owned(),
    };
    if let Some(parameters) = parameters {
        let masked = parameters.split('&').map(|pair| match pair.split_once('=') {
            Some((name, _)) if name.to_lowercase().contains("password") => format!("{name}={MASK}"),
            _ => pair.to_owned(),
        });
        shown = format!("{shown}?{}", masked.collect::<Vec<_>>().join("&"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use sindri_process::{Config, ConfigError};

    use super::*;

    fn read(file: Option<&str>, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let environment = environment.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        Config::read(&PROGRAM, file.map(|text| ("b.toml", text)), environment, [])
    }

    fn mistake(file: Option<&str>, environment: &[(&str, &str)]) -> String {
        read(file, environment).unwrap_err().to_string()
    }

    #[test]
    fn every_default_is_a_value_that_the_setting_takes() {
        for setting in PROGRAM.settings {
            assert_eq!(setting.default.map_or(Ok(()), |text| setting.check(text)), Ok(()), "{}", setting.key);
            assert_eq!(setting.flag.is_none(), setting.is_secret, "{}", setting.key);
        }
        let config = read(None, &[]).unwrap();
        assert_eq!((config.text(&LISTEN), config.count(&WORKERS)), ("127.0.0.1:3000", 1));
        assert_eq!((config.text(&DATABASE_URL), config.path(&TLS_KEY_FILE)), ("sqlite:sindri.db", None));
    }

    #[test]
    fn passwords_in_an_address_are_not_shown() {
        for (url, shown) in [
            ("sqlite:a.db", "sqlite:a.db"),
            ("postgres://me@host/db", "postgres://me@host/db"),
            ("postgres://me:se:cr@et@host:1/db?sslmode=require", "postgres://me:***@host:1/db?sslmode=require"),
            ("postgres://host/db?user=me&password=secret", "postgres://host/db?user=me&password=***"),
        ] {
            assert_eq!(without_password(url), shown);
        }
        assert!(!mistake(None, &[("SINDRI__BROKER__DATABASE__URL", "mysql://me:secret@h/d")]).contains("secret"));
    }

    #[test]
    fn variables_have_sections_between_double_underscores() {
        assert_eq!(PROGRAM.variable(&TLS_KEY_FILE), "SINDRI__BROKER__TLS__KEY_FILE");
        assert_eq!(PROGRAM.variable(&LISTEN), "SINDRI__BROKER__LISTEN");
    }

    #[test]
    fn what_nobody_knows_is_refused_with_the_nearest_name() {
        assert_eq!(
            mistake(Some("[database]\nconections = 2"), &[]),
            "file b.toml:2: there is no setting database.conections; the nearest is database.connections"
        );
        assert_eq!(
            mistake(None, &[("SINDRI__BROKER__DATABSE__URL", "x")]),
            "environment: there is no setting SINDRI__BROKER__DATABSE__URL; \
             the nearest is SINDRI__BROKER__DATABASE__URL"
        );
    }

    #[test]
    fn settings_that_need_or_exclude_each_other_are_checked() {
        assert!(mistake(Some("tls.key_file = \"k\""), &[]).contains("tls.key_file is set and tls.certificate_file is"));
        let both =
            [("SINDRI__BROKER__WEBHOOKS__ENCRYPTION_KEY", "a"), ("SINDRI__BROKER__WEBHOOKS__ENCRYPTION_KEY_FILE", "b")];
        assert!(mistake(None, &both).contains("one of them at most"));
    }
}
