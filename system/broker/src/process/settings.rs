//! Settings of the broker.

use clap::{Arg, ArgAction, Command};
use sindri_broker::TrustedProxies;
use sindri_client::is_secure_url;
use sindri_process::{CustomType, MASK, Program, Rule, Setting, SettingType, VERSION};

/// Type of a database URL, which may contain a password.
const DATABASE: CustomType = CustomType {
    placeholder: "URL",
    is_valid: is_database_url,
    expected: "must be like sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME",
    redact: mask_password,
};

/// Type of a list of addresses and networks.
const NETWORKS: CustomType = CustomType {
    placeholder: "ADDRESSES",
    is_valid: |text| TrustedProxies::parse(text).is_ok(),
    expected: "must be addresses or networks like 10.0.0.0/8, separated by commas",
    redact: str::to_owned,
};

/// Type of the URL of a provider of tokens: keys that others could replace on the way would let them log in.
const SECURE_URL: CustomType = CustomType {
    placeholder: "URL",
    is_valid: is_secure_url,
    expected: "must be like https://HOST, without a user; http is for this machine only, such as http://127.0.0.1:PORT",
    redact: |text| if is_secure_url(text) { text.to_owned() } else { MASK.to_owned() },
};

/// Command that begins a new epoch after a restore by other means.
pub const RESTORE_EPOCH: &str = "restore-epoch";
/// Command that writes a backup.
pub const BACKUP: &str = "backup";
/// Command that restores a backup.
pub const RESTORE: &str = "restore";
/// Command that encrypts the secrets of webhooks and encrypted bundles with another key.
pub const ROTATE_ENCRYPTION_KEY: &str = "rotate-encryption-key";
/// Command that creates an administrator.
pub const CREATE_ADMIN: &str = "create-admin";
/// Argument of [`CREATE_ADMIN`].
pub const NAME: &str = "name";
/// Argument of [`BACKUP`] and [`RESTORE`].
pub const FILE: &str = "file";
/// Flag of [`RESTORE`].
pub const OVERWRITE: &str = "overwrite";
/// Argument of [`ROTATE_ENCRYPTION_KEY`] and [`CREATE_ADMIN`].
pub const NEW_KEY_FILE: &str = "new-key-file";

/// Address to listen on.
pub const LISTEN: Setting = Setting {
    default: Some("127.0.0.1:3000"),
    ..Setting::plain(
        "listen",
        "listen",
        SettingType::Text,
        "Address to listen on, as HOST:PORT; port 0 selects a free port",
    )
};
/// Database.
pub const DATABASE_URL: Setting = Setting {
    default: Some("sqlite:sindri.db"),
    ..Setting::plain(
        "database.url",
        "database-url",
        SettingType::Custom(&DATABASE),
        "Database, as sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME",
    )
};
/// Size of the connection pool.
pub const DATABASE_CONNECTIONS: Setting = Setting {
    default: Some("8"),
    ..Setting::plain(
        "database.connections",
        "database-connections",
        SettingType::Count(1, 1_000),
        "Number of connections to a PostgreSQL server",
    )
};
/// File of the administrator's key.
pub const ADMIN_KEY_FILE: Setting = Setting {
    default: Some("sindri-admin.key"),
    ..Setting::plain(
        "admin_key_file",
        "admin-key-file",
        SettingType::Path,
        "File of the administrator's key: read at the first start if it exists, otherwise written",
    )
};
/// Prints the administrator's key.
pub const PRINT_ADMIN_KEY: Setting = Setting {
    default: Some("false"),
    ..Setting::plain(
        "print_admin_key",
        "print-admin-key",
        SettingType::Switch,
        "Print the administrator's key when it is created, not only the name of its file",
    )
};
/// Certificate of the server.
pub const TLS_CERTIFICATE_FILE: Setting = Setting::plain(
    "tls.certificate_file",
    "tls-certificate-file",
    SettingType::Path,
    "Certificate of the server with its chain, in PEM; read again when it changes",
);
/// Private key of the certificate.
pub const TLS_KEY_FILE: Setting =
    Setting::plain("tls.key_file", "tls-key-file", SettingType::Path, "Private key of the certificate, in PEM");
/// Format of log lines.
pub const LOG_FORM: Setting = Setting::log_format("log.form");
/// Level of log lines.
pub const LOG_LEVEL: Setting = Setting::log_level("log.level");
/// Collector of traces.
pub const OTLP_ENDPOINT: Setting = Setting::otlp_endpoint("otlp.endpoint");
/// Limit on the body of a request.
pub const LIMITS_BODY_BYTES: Setting = Setting {
    default: Some("2097152"),
    ..Setting::plain(
        "limits.body_bytes",
        "limits-body-bytes",
        SettingType::Count(1_024, 1 << 26),
        "Largest body of a request, in bytes",
    )
};
/// Limit on open connections.
pub const LIMITS_CONNECTIONS: Setting = Setting {
    default: Some("16384"),
    ..Setting::plain(
        "limits.connections",
        "limits-connections",
        SettingType::Count(1, 1_000_000),
        "Maximum number of open connections; further ones take the places of those without an accepted key",
    )
};
/// Limit on open connections of one peer.
pub const LIMITS_CONNECTIONS_PER_PEER: Setting = Setting {
    default: Some("4096"),
    ..Setting::plain(
        "limits.connections_per_peer",
        "limits-connections-per-peer",
        SettingType::Count(1, 1_000_000),
        "Maximum number of open connections from one address; further ones are closed",
    )
};
/// Limit on the wait of a poll.
pub const LIMITS_WAIT_SECONDS_MAX: Setting = Setting {
    default: Some("300"),
    ..Setting::plain(
        "limits.wait_seconds_max",
        "limits-wait-seconds-max",
        SettingType::Count(0, 3_600),
        "Longest time, in seconds, that a poll may wait for a change",
    )
};
/// Time without a heartbeat after which an agent is offline.
pub const AGENTS_OFFLINE_AFTER_SECONDS: Setting = Setting {
    default: Some("120"),
    ..Setting::plain(
        "agents.offline_after_seconds",
        "agents-offline-after-seconds",
        SettingType::Count(0, 604_800),
        "Time without a heartbeat, in seconds, after which subscribers are notified that an agent is offline; 0 means never",
    )
};
/// Proxies whose header names the client.
pub const TRUSTED_PROXIES: Setting = Setting {
    default: Some(""),
    ..Setting::plain(
        "trusted_proxies",
        "trusted-proxies",
        SettingType::Custom(&NETWORKS),
        "Addresses and networks of proxies whose X-Forwarded-For names the client, separated by commas",
    )
};
/// Header of the PROXY protocol on connections of trusted proxies.
pub const PROXY_PROTOCOL: Setting = Setting {
    default: Some("false"),
    ..Setting::plain(
        "proxy_protocol",
        "proxy-protocol",
        SettingType::Switch,
        "Connections of trusted proxies begin with a header of the PROXY protocol, version 1 or 2, which names the client",
    )
};
/// Time for which events are kept.
pub const RETENTION_EVENTS_DAYS: Setting = Setting {
    default: Some("90"),
    ..Setting::plain(
        "retention.events_days",
        "retention-events-days",
        SettingType::Count(0, 36_500),
        "Days for which events are kept, except the last of each agent about a newest revision; 0 means for ever",
    )
};
/// Time for which the audit log is kept.
pub const RETENTION_AUDIT_DAYS: Setting = Setting {
    default: Some("365"),
    ..Setting::plain(
        "retention.audit_days",
        "retention-audit-days",
        SettingType::Count(0, 36_500),
        "Days for which entries of the audit log are kept; 0 means for ever",
    )
};
/// Time for which superseded revisions are kept.
pub const RETENTION_REVISIONS_DAYS: Setting = Setting {
    default: Some("365"),
    ..Setting::plain(
        "retention.revisions_days",
        "retention-revisions-days",
        SettingType::Count(0, 36_500),
        "Days for which superseded revisions are kept, with their health reports and decided approvals; 0 means for ever",
    )
};
/// Quota of stacks.
pub const QUOTAS_STACKS: Setting = Setting {
    default: Some("0"),
    ..Setting::plain(
        "quotas.stacks",
        "quotas-stacks",
        SettingType::Count(0, 1_000_000),
        "Maximum number of stacks of each generator; 0 means no limit",
    )
};
/// Quota of the size of revisions.
pub const QUOTAS_REVISION_BYTES: Setting = Setting {
    default: Some("0"),
    ..Setting::plain(
        "quotas.revision_bytes",
        "quotas-revision-bytes",
        SettingType::Count(0, 1 << 50),
        "Maximum size of all stored revisions of each generator, in bytes; 0 means no limit",
    )
};
/// Quota of submissions.
pub const QUOTAS_SUBMISSIONS_PER_MINUTE: Setting = Setting {
    default: Some("0"),
    ..Setting::plain(
        "quotas.submissions_per_minute",
        "quotas-submissions-per-minute",
        SettingType::Count(0, 1_000_000),
        "Maximum number of revisions that each generator submits in a minute; 0 means no limit",
    )
};
/// Quota of requests.
pub const QUOTAS_REQUESTS_PER_MINUTE: Setting = Setting {
    default: Some("0"),
    ..Setting::plain(
        "quotas.requests_per_minute",
        "quotas-requests-per-minute",
        SettingType::Count(0, 1_000_000),
        "Maximum number of requests of each agent and generator in a minute; 0 means no limit",
    )
};
/// Allows webhooks to private addresses.
pub const WEBHOOKS_ALLOW_PRIVATE_TARGETS: Setting = Setting {
    default: Some("false"),
    ..Setting::plain(
        "webhooks.allow_private_targets",
        "webhooks-allow-private-targets",
        SettingType::Switch,
        "Allow webhooks to private addresses and over plain HTTP",
    )
};
/// File of the encryption key of webhooks.
pub const WEBHOOKS_ENCRYPTION_KEY_FILE: Setting = Setting::plain(
    "webhooks.encryption_key_file",
    "webhooks-encryption-key-file",
    SettingType::Path,
    "File of the key that encrypts the secrets of webhooks, and bundles if they are encrypted",
);
/// Encryption of bundles.
pub const DATABASE_ENCRYPT_BUNDLES: Setting = Setting {
    default: Some("false"),
    ..Setting::plain(
        "database.encrypt_bundles",
        "encrypt-bundles",
        SettingType::Switch,
        "Whether bundles are stored encrypted, with the key of webhooks.encryption_key_file",
    )
};
/// Provider of the tokens of people.
pub const OIDC_ISSUER: Setting = Setting::plain(
    "oidc.issuer",
    "oidc-issuer",
    SettingType::Custom(&SECURE_URL),
    "URL of the OpenID Connect provider whose tokens people may use instead of keys, as its tokens have it in iss",
);
/// Audience of the tokens of people.
pub const OIDC_AUDIENCE: Setting = Setting::plain(
    "oidc.audience",
    "oidc-audience",
    SettingType::Text,
    "Value that aud of a token must have: the client id with which people log in",
);
/// Claim with roles.
pub const OIDC_ROLE_CLAIM: Setting = Setting {
    default: Some("roles"),
    ..Setting::plain(
        "oidc.role_claim",
        "oidc-role-claim",
        SettingType::Text,
        "Claim with the roles or groups of a person",
    )
};
/// Roles of administrators.
pub const OIDC_ADMIN_ROLES: Setting = Setting {
    default: Some("sindri-admin"),
    ..Setting::plain(
        "oidc.admin_roles",
        "oidc-admin-roles",
        SettingType::Text,
        "Values of the claim that give all permissions, separated by commas",
    )
};
/// Roles of readers.
pub const OIDC_READER_ROLES: Setting = Setting {
    default: Some("sindri-reader"),
    ..Setting::plain(
        "oidc.reader_roles",
        "oidc-reader-roles",
        SettingType::Text,
        "Values of the claim that give permission to read, separated by commas",
    )
};
/// Encryption key of webhooks.
pub const WEBHOOKS_ENCRYPTION_KEY: Setting = Setting::secret(
    "webhooks.encryption_key",
    "Key that encrypts the secrets of webhooks, and bundles if they are encrypted",
);
/// Number of threads.
pub const WORKERS: Setting = Setting {
    default: Some("1"),
    ..Setting::plain("workers", "workers", SettingType::Count(1, 256), "Number of threads that serve requests")
};

/// The broker program.
pub static PROGRAM: Program = Program {
    name: "sindri-broker",
    version: VERSION,
    about: "Stores the stacks of every cluster and serves their agents.",
    prefix: "SINDRI__BROKER__",
    section: "",
    settings: &[
        &LISTEN,
        &DATABASE_URL,
        &DATABASE_CONNECTIONS,
        &DATABASE_ENCRYPT_BUNDLES,
        &ADMIN_KEY_FILE,
        &PRINT_ADMIN_KEY,
        &TLS_CERTIFICATE_FILE,
        &TLS_KEY_FILE,
        &LOG_FORM,
        &LOG_LEVEL,
        &OTLP_ENDPOINT,
        &LIMITS_BODY_BYTES,
        &LIMITS_CONNECTIONS,
        &LIMITS_CONNECTIONS_PER_PEER,
        &LIMITS_WAIT_SECONDS_MAX,
        &TRUSTED_PROXIES,
        &PROXY_PROTOCOL,
        &AGENTS_OFFLINE_AFTER_SECONDS,
        &RETENTION_EVENTS_DAYS,
        &RETENTION_AUDIT_DAYS,
        &RETENTION_REVISIONS_DAYS,
        &QUOTAS_STACKS,
        &QUOTAS_REVISION_BYTES,
        &QUOTAS_SUBMISSIONS_PER_MINUTE,
        &QUOTAS_REQUESTS_PER_MINUTE,
        &OIDC_ISSUER,
        &OIDC_AUDIENCE,
        &OIDC_ROLE_CLAIM,
        &OIDC_ADMIN_ROLES,
        &OIDC_READER_ROLES,
        &WEBHOOKS_ALLOW_PRIVATE_TARGETS,
        &WEBHOOKS_ENCRYPTION_KEY_FILE,
        &WEBHOOKS_ENCRYPTION_KEY,
        &WORKERS,
    ],
    rules: &[
        Rule::Together(&TLS_CERTIFICATE_FILE, &TLS_KEY_FILE),
        Rule::Together(&OIDC_ISSUER, &OIDC_AUDIENCE),
        Rule::OneAtMost(&WEBHOOKS_ENCRYPTION_KEY, &WEBHOOKS_ENCRYPTION_KEY_FILE),
    ],
    example: &DATABASE_URL,
    commands: build_commands,
};

fn build_commands() -> Vec<Command> {
    let file = || Arg::new(FILE).value_name("FILE").required(true);
    let overwrite = Arg::new(OVERWRITE).long(OVERWRITE).action(ArgAction::SetTrue);
    let new_key = || Arg::new(NEW_KEY_FILE).value_name("NEW_KEY_FILE").required(true);
    let name = Arg::new(NAME).value_name("NAME").required(true);
    vec![
        Command::new(BACKUP)
            .about("Write a checked copy of an SQLite database to a new file, also while the broker runs, and exit")
            .arg(file().help("File of the backup")),
        Command::new(RESTORE)
            .about("Restore a backup to an SQLite database whose broker is stopped, in a new epoch, and exit")
            .arg(file().help("File of the backup"))
            .arg(overwrite.help("Replace a database that is not empty; it is kept with the suffix .replaced")),
        Command::new(CREATE_ADMIN)
            .about("Create an administrator if the keys of all others are lost, and exit; a broker on SQLite must be stopped, those on PostgreSQL must have this version")
            .arg(name.help("Its name"))
            .arg(new_key().help("New file for its key; - writes the key to standard output")),
        Command::new(RESTORE_EPOCH).about("Record that the database was restored by other means, and exit"),
        Command::new(ROTATE_ENCRYPTION_KEY)
            .about("Encrypt the secrets of webhooks and encrypted bundles with another key, while all brokers are stopped, and exit")
            .arg(new_key().help("File of the new key; then set webhooks.encryption_key_file to it")),
    ]
}

fn is_database_url(text: &str) -> bool {
    let prefixes = ["sqlite:", "postgres://", "postgresql://"];
    prefixes.iter().any(|start| text.strip_prefix(start).is_some_and(|rest| !rest.trim_start_matches('/').is_empty()))
}

/// Masks the password between the user name and the last `@`, and a parameter `password`.
fn mask_password(url: &str) -> String {
    // A password may contain a question mark: the parameters begin behind the host.
    let (url, parameters) = match url.rsplit_once('?') {
        Some((before, after)) if !after.contains('@') => (before, Some(after)),
        Some(_) | None => (url, None),
    };
    let mut masked_url = match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?))) {
        Some((scheme, (user, host))) => {
            let user = match user.split_once(':') {
                Some((name, _)) => format!("{name}:{MASK}"),
                None if user.contains('?') => MASK.to_owned(),
                None => user.to_owned(),
            };
            format!("{scheme}://{user}@{host}")
        }
        None => url.to_owned(),
    };
    if let Some(parameters) = parameters {
        let masked = parameters.split('&').map(|pair| match pair.split_once('=') {
            Some((name, _)) if name.to_lowercase().contains("password") => format!("{name}={MASK}"),
            _ => pair.to_owned(),
        });
        masked_url = format!("{masked_url}?{}", masked.collect::<Vec<_>>().join("&"));
    }
    masked_url
}

#[cfg(test)]
mod tests {
    use sindri_process::{Config, ConfigError};

    use super::*;

    fn read(file: Option<&str>, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let environment = environment.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        Config::read(&PROGRAM, file.map(|text| ("b.toml", text)), environment, [])
    }

    fn read_error(file: Option<&str>, environment: &[(&str, &str)]) -> String {
        read(file, environment).unwrap_err().to_string()
    }

    #[test]
    fn every_default_is_a_valid_value() {
        for setting in PROGRAM.settings {
            assert_eq!(setting.default.map_or(Ok(()), |text| setting.check(text)), Ok(()), "{}", setting.key);
            assert_eq!(setting.flag.is_none(), setting.is_secret, "{}", setting.key);
        }
        let config = read(None, &[]).unwrap();
        assert_eq!((config.text(&LISTEN), config.count(&WORKERS)), ("127.0.0.1:3000", 1));
        assert_eq!((config.text(&DATABASE_URL), config.path(&TLS_KEY_FILE)), ("sqlite:sindri.db", None));
    }

    #[test]
    fn passwords_in_a_url_are_masked() {
        for (url, shown) in [
            ("sqlite:a.db", "sqlite:a.db"),
            ("postgres://me@host/db", "postgres://me@host/db"),
            ("postgres://me:se?cret@host/db", "postgres://me:***@host/db"),
            ("postgres://me:se?cret@host/db?sslmode=require", "postgres://me:***@host/db?sslmode=require"),
            ("postgres://host/db?password=se@cret", "postgres://***@cret"),
            ("postgres://me:se:cr@et@host:1/db?sslmode=require", "postgres://me:***@host:1/db?sslmode=require"),
            ("postgres://host/db?user=me&password=secret", "postgres://host/db?user=me&password=***"),
        ] {
            assert_eq!(mask_password(url), shown);
        }
        assert!(!read_error(None, &[("SINDRI__BROKER__DATABASE__URL", "mysql://me:secret@h/d")]).contains("secret"));
    }

    #[test]
    fn a_provider_without_tls_is_on_this_machine() {
        let with_issuer = |url| {
            read(None, &[("SINDRI__BROKER__OIDC__ISSUER", url), ("SINDRI__BROKER__OIDC__AUDIENCE", "sindri")]).map(drop)
        };
        assert!(with_issuer("https://id.example/realms/a").is_ok());
        assert!(with_issuer("http://127.0.0.1:4000").is_ok());
        for url in ["http://id.example", "id.example", "https://me:secret@id.example"] {
            let error = with_issuer(url).unwrap_err().to_string();
            assert!(error.contains("oidc.issuer") || error.contains("OIDC__ISSUER"), "{error}");
            assert!(error.contains("must be like https://HOST") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn double_underscores_separate_sections_in_variables() {
        assert_eq!(PROGRAM.variable(&TLS_KEY_FILE), "SINDRI__BROKER__TLS__KEY_FILE");
        assert_eq!(PROGRAM.variable(&LISTEN), "SINDRI__BROKER__LISTEN");
    }

    #[test]
    fn an_unknown_setting_is_rejected_with_the_nearest_name() {
        assert_eq!(
            read_error(Some("[database]\nconections = 2"), &[]),
            "file b.toml:2: there is no setting database.conections; the nearest is database.connections"
        );
        assert_eq!(
            read_error(None, &[("SINDRI__BROKER__DATABSE__URL", "x")]),
            "environment: there is no setting SINDRI__BROKER__DATABSE__URL; \
             the nearest is SINDRI__BROKER__DATABASE__URL"
        );
    }

    #[test]
    fn settings_that_need_or_exclude_each_other_are_checked() {
        assert!(
            read_error(Some("tls.key_file = \"k\""), &[]).contains("tls.key_file is set and tls.certificate_file is")
        );
        let both =
            [("SINDRI__BROKER__WEBHOOKS__ENCRYPTION_KEY", "a"), ("SINDRI__BROKER__WEBHOOKS__ENCRYPTION_KEY_FILE", "b")];
        assert!(read_error(None, &both).contains("set at most one of them"));
    }
}
