//! Every setting, said once: flags, environment, file, `--print-config` and checks all follow this table.

/// What a setting may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Any text that is not empty.
    Text,
    /// A path of a file.
    Path,
    /// Where the database is; may hold a password.
    DatabaseUrl,
    /// A whole number between these two.
    Count(u64, u64),
    /// `true` or `false`.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Its name in the file; sections are separated by dots.
    pub key: &'static str,
    /// Its flag, without the dashes. What is secret has none: arguments are seen by everyone on the machine.
    pub flag: Option<&'static str>,
    /// What it is when nobody says anything; without one it is unset.
    pub default: Option<&'static str>,
    /// What it may be.
    pub kind: Kind,
    /// Never shown.
    pub is_secret: bool,
    /// One sentence for people.
    pub help: &'static str,
}

/// What the name of every variable in the environment begins with.
pub const PREFIX: &str = "SINDRI__BROKER__";

/// Where to listen.
pub const LISTEN: Setting = Setting {
    default: Some("127.0.0.1:3000"),
    ..plain("listen", "listen", Kind::Text, "Where to listen, as HOST:PORT; port 0 takes a free one")
};
/// The database.
pub const DATABASE_URL: Setting = Setting {
    default: Some("sqlite:sindri.db"),
    ..plain("database.url", "database-url", Kind::DatabaseUrl, "The database, as sqlite:PATH")
};
/// How many connections to the database are kept.
pub const DATABASE_CONNECTIONS: Setting = Setting {
    default: Some("8"),
    ..plain(
        "database.connections",
        "database-connections",
        Kind::Count(1, 1_000),
        "How many connections to a database server are kept",
    )
};
/// The administrator's key.
pub const ADMIN_KEY_FILE: Setting = Setting {
    default: Some("sindri-admin.key"),
    ..plain(
        "admin_key_file",
        "admin-key-file",
        Kind::Path,
        "Where the administrator's key is kept: read at the first start if the file is there, else written",
    )
};
/// The certificate to show.
pub const TLS_CERTIFICATE_FILE: Setting = plain(
    "tls.certificate_file",
    "tls-certificate-file",
    Kind::Path,
    "The certificate to show, with its chain, in PEM; read again when it changes",
);
/// The key of the certificate.
pub const TLS_KEY_FILE: Setting =
    plain("tls.key_file", "tls-key-file", Kind::Path, "The key of the certificate, in PEM");
/// How to write log lines.
pub const LOG_FORM: Setting = Setting {
    default: Some("pretty"),
    ..plain("log.form", "log", Kind::Choice(&["pretty", "json", "off"]), "How to write log lines (to standard error)")
};
/// Which lines to write.
pub const LOG_LEVEL: Setting = Setting {
    default: Some("info"),
    ..plain(
        "log.level",
        "log-level",
        Kind::Choice(&["error", "warn", "info", "debug", "trace"]),
        "The least important lines to write",
    )
};
/// The largest body of a request.
pub const LIMITS_BODY_BYTES: Setting = Setting {
    default: Some("2097152"),
    ..plain("limits.body_bytes", "limits-body-bytes", Kind::Count(1_024, 1 << 26), "The largest body that is accepted")
};
/// The most connections.
pub const LIMITS_CONNECTIONS: Setting = Setting {
    default: Some("16384"),
    ..plain(
        "limits.connections",
        "limits-connections",
        Kind::Count(1, 1_000_000),
        "The most open connections; further ones wait",
    )
};
/// The longest wait of a poll.
pub const LIMITS_WAIT_SECONDS_MAX: Setting = Setting {
    default: Some("300"),
    ..plain(
        "limits.wait_seconds_max",
        "limits-wait-seconds-max",
        Kind::Count(0, 3_600),
        "The longest time that a poll may ask to wait for a change",
    )
};
/// Whether webhooks may go to private addresses.
pub const WEBHOOKS_ALLOW_PRIVATE_TARGETS: Setting = Setting {
    default: Some("false"),
    ..plain(
        "webhooks.allow_private_targets",
        "webhooks-allow-private-targets",
        Kind::Switch,
        "Whether webhooks may be delivered to private addresses",
    )
};
/// Where the key for the secrets of webhooks is.
pub const WEBHOOKS_ENCRYPTION_KEY_FILE: Setting = plain(
    "webhooks.encryption_key_file",
    "webhooks-encryption-key-file",
    Kind::Path,
    "Where the key is that the secrets of webhooks are stored under",
);
/// The key itself.
pub const WEBHOOKS_ENCRYPTION_KEY: Setting = Setting {
    flag: None,
    is_secret: true,
    ..plain("webhooks.encryption_key", "", Kind::Text, "The key that the secrets of webhooks are stored under")
};
/// Threads.
pub const WORKERS: Setting = Setting {
    default: Some("1"),
    ..plain("workers", "workers", Kind::Count(1, 256), "The threads that serve requests")
};

/// The table, in the order in which it is shown.
pub const SETTINGS: [&Setting; 15] = [
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
    &WEBHOOKS_ALLOW_PRIVATE_TARGETS,
    &WEBHOOKS_ENCRYPTION_KEY_FILE,
    &WEBHOOKS_ENCRYPTION_KEY,
    &WORKERS,
];

const fn plain(key: &'static str, flag: &'static str, kind: Kind, help: &'static str) -> Setting {
    Setting { key, flag: Some(flag), default: None, kind, is_secret: false, help }
}

impl Setting {
    /// Its variable in the environment.
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.key.to_uppercase().replace('.', "__"))
    }

    /// Whether it may be `text`; if not, what is expected instead.
    pub fn check(&self, text: &str) -> Result<(), String> {
        let (fits, expected) = match self.kind {
            Kind::Text => (!text.is_empty(), "a text".to_owned()),
            Kind::Path => (!text.is_empty(), "a path".to_owned()),
            Kind::DatabaseUrl => {
                (is_database_url(text), "must be like sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME".to_owned())
            }
            Kind::Count(min, max) => (
                text.parse::<u64>().is_ok_and(|count| (min..=max).contains(&count)),
                format!("must be a number from {min} to {max}"),
            ),
            Kind::Switch => (["true", "false"].contains(&text), "must be true or false".to_owned()),
            Kind::Choice(words) => (words.contains(&text), format!("must be one of {}", words.join(", "))),
        };
        if fits { Ok(()) } else { Err(expected) }
    }

    /// The value as it may be shown.
    pub fn shown(&self, text: &str) -> String {
        match self.kind {
            _ if self.is_secret => MASK.to_owned(),
            Kind::DatabaseUrl => without_password(text),
            Kind::Text | Kind::Path | Kind::Count(..) | Kind::Switch | Kind::Choice(_) => text.to_owned(),
        }
    }
}

const MASK: &str = "***";

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
    use super::*;

    #[test]
    fn every_default_is_a_value_that_the_setting_takes() {
        for setting in SETTINGS {
            assert_eq!(setting.default.map_or(Ok(()), |text| setting.check(text)), Ok(()), "{}", setting.key);
            assert_eq!(setting.flag.is_none(), setting.is_secret, "{}", setting.key);
        }
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
    }

    #[test]
    fn variables_have_sections_between_double_underscores() {
        assert_eq!(TLS_KEY_FILE.variable(), "SINDRI__BROKER__TLS__KEY_FILE");
        assert_eq!(LISTEN.variable(), "SINDRI__BROKER__LISTEN");
    }
}
