//! Table of all settings of the agent.

use http::Uri;
use sindri_model::ServiceAccount;
use sindri_process::{CustomType, MASK, Program, Rule, Setting, SettingType, VERSION};

/// Command that previews the next passes.
pub const PLAN: &str = "plan";
/// Command that lists orphaned objects.
pub const ORPHANS: &str = "orphans";
/// Command that runs the agent; the default.
pub const RUN: &str = "run";

/// Most characters in the name of a namespace.
const LABEL_CHARS_MAX: usize = 63;

const URL: CustomType = CustomType {
    placeholder: "URL",
    is_valid: is_url,
    expected: "must be like http://HOST:PORT or https://HOST, without a user, a query or a fragment",
    redact: without_user,
};
const NAMESPACE_NAME: CustomType = CustomType {
    placeholder: "NAME",
    is_valid: is_label,
    expected: "must be the name of a namespace: lowercase letters, digits and dashes, at most 63",
    redact: str::to_owned,
};
const SERVICE_ACCOUNT: CustomType = CustomType {
    placeholder: "NAMESPACE/NAME",
    is_valid: |text| text.parse::<ServiceAccount>().is_ok(),
    expected: "must be the namespace and the name of a ServiceAccount, such as shop/deployer",
    redact: str::to_owned,
};
const ADDRESS: CustomType = CustomType {
    placeholder: "HOST:PORT",
    is_valid: |text| text.is_empty() || is_address(text),
    expected: "must be like HOST:PORT, or empty",
    redact: str::to_owned,
};

/// Name of the agent.
pub const NAME: Setting = Setting::plain("agent.name", "name", SettingType::Text, "Name of this agent at the broker");
/// Name of the cluster.
pub const CLUSTER_NAME: Setting = Setting::plain(
    "agent.cluster_name",
    "cluster",
    SettingType::Text,
    "Name of the cluster of this agent at the broker",
);
/// URL of the broker.
pub const BROKER_URL: Setting =
    Setting::plain("agent.broker_url", "broker", SettingType::Custom(&URL), "URL of the broker");
/// Certificate authorities for the broker.
pub const BROKER_CA_FILE: Setting = Setting::plain(
    "agent.broker_ca_file",
    "broker-ca-file",
    SettingType::Path,
    "PEM file with the certificate authorities that may issue the broker's certificate, instead of those that the machine trusts",
);
/// Access key of the agent.
pub const PAK: Setting = Setting::secret("agent.pak", "Access key of this agent");
/// File with the access key.
pub const PAK_FILE: Setting = Setting::plain(
    "agent.pak_file",
    "pak-file",
    SettingType::Path,
    "File with the access key; it must not be readable by other users",
);
/// Kubeconfig of the cluster.
pub const KUBECONFIG: Setting = Setting::plain(
    "agent.kubeconfig",
    "kubeconfig",
    SettingType::Path,
    "Kubeconfig of the cluster; without it the service account of the pod is used",
);
/// Context in the kubeconfig.
pub const CONTEXT: Setting =
    Setting::plain("agent.context", "context", SettingType::Text, "Context of the kubeconfig, if not its current one");
/// Polling interval.
pub const POLLING_INTERVAL: Setting = Setting::plain(
    "agent.polling_interval",
    "polling-interval",
    SettingType::Count(1, 86_400),
    "Seconds between two polls of the broker",
)
.with_default("30");
/// Namespace that the agent is limited to.
pub const NAMESPACE: Setting = Setting::plain(
    "agent.namespace",
    "namespace",
    SettingType::Custom(&NAMESPACE_NAME),
    "The only namespace that the agent may touch; without it, the whole cluster",
);
/// Namespaces that are closed to stacks.
pub const RESERVED_NAMESPACES: Setting = Setting::plain(
    "agent.reserved_namespaces",
    "reserved-namespaces",
    SettingType::Text,
    "Namespaces that no stack may use, separated by commas, such as `kube-system`; the agent's own is always one",
);
/// ServiceAccount of stacks that name none.
pub const DEFAULT_SERVICE_ACCOUNT: Setting = Setting::plain(
    "agent.default_service_account",
    "default-service-account",
    SettingType::Custom(&SERVICE_ACCOUNT),
    "ServiceAccount, as `namespace/name`, with whose permissions stacks are written that name none; without it, those of the agent",
);
/// Treatment of drift.
pub const DRIFT: Setting = Setting::plain(
    "agent.drift",
    "drift",
    SettingType::Choice(&["off", "detect", "correct"]),
    "Treatment of objects that other clients changed",
)
.with_default("correct");
/// Use of the brake.
pub const BRAKE_ENABLED: Setting = Setting::plain(
    "agent.brake.enabled",
    "brake-enabled",
    SettingType::Switch,
    "Whether deleting much of a stack at once waits for an approval",
)
.with_default("true");
/// Objects that the brake always allows to delete.
pub const BRAKE_OBJECTS: Setting = Setting::plain(
    "agent.brake.objects",
    "brake-objects",
    SettingType::Count(0, 1_000_000),
    "Number of objects of a stack that may always be deleted at once",
)
.with_default("5");
/// Percentage that the brake always allows to delete.
pub const BRAKE_PERCENT: Setting = Setting::plain(
    "agent.brake.percent",
    "brake-percent",
    SettingType::Count(0, 100),
    "Percentage of a stack that may always be deleted at once",
)
.with_default("50");
/// Use of leader election.
pub const LEASE: Setting = Setting::plain(
    "agent.lease",
    "lease",
    SettingType::Switch,
    "Whether to use leader election by a Lease in the cluster, so that two processes of one agent never act at the same time",
)
.with_default("true");
/// Name of the process in leader election.
pub const IDENTITY: Setting = Setting::plain(
    "agent.identity",
    "identity",
    SettingType::Text,
    "Name of this process in the Lease; by default the name of the host, the process id and a random number. No two processes may have the same",
);
/// Address of the probes.
pub const LISTEN: Setting = Setting::plain(
    "agent.listen",
    "listen",
    SettingType::Custom(&ADDRESS),
    "Address of /healthz, /readyz and /metrics; port 0 takes a free port, empty serves none",
)
.with_default("");
/// Format of log lines.
pub const LOG_FORM: Setting = Setting::log_format("agent.log.form");
/// Level of log lines.
pub const LOG_LEVEL: Setting = Setting::log_level("agent.log.level");
/// Collector of traces.
pub const OTLP_ENDPOINT: Setting = Setting::otlp_endpoint("agent.otlp.endpoint");

/// Program and settings of the agent.
pub static PROGRAM: Program = Program {
    name: "sindri-agent",
    version: VERSION,
    about: "Keeps one cluster at the state that the broker declares for it.",
    prefix: "SINDRI__AGENT__",
    section: "agent.",
    settings: &[
        &NAME,
        &CLUSTER_NAME,
        &BROKER_URL,
        &BROKER_CA_FILE,
        &PAK,
        &PAK_FILE,
        &KUBECONFIG,
        &CONTEXT,
        &POLLING_INTERVAL,
        &NAMESPACE,
        &RESERVED_NAMESPACES,
        &DEFAULT_SERVICE_ACCOUNT,
        &DRIFT,
        &BRAKE_ENABLED,
        &BRAKE_OBJECTS,
        &BRAKE_PERCENT,
        &LEASE,
        &IDENTITY,
        &LISTEN,
        &LOG_FORM,
        &LOG_LEVEL,
        &OTLP_ENDPOINT,
    ],
    rules: &[Rule::OneAtMost(&PAK, &PAK_FILE)],
    example: &PAK,
    commands,
};

fn commands() -> Vec<clap::Command> {
    let command = |name, about| clap::Command::new(name).about(about);
    vec![
        command(RUN, "Runs the agent; the default"),
        command(PLAN, "Shows what the agent would do, without doing it"),
        command(ORPHANS, "Lists objects with ownership annotations of stacks that are not in the target state"),
    ]
}

fn is_url(text: &str) -> bool {
    let Ok(url) = text.parse::<Uri>() else { return false };
    let is_web = matches!(url.scheme_str(), Some("http" | "https"));
    let has_host = url.host().is_some_and(|host| !host.is_empty());
    let has_user = url.authority().is_some_and(|authority| authority.as_str().contains('@'));
    is_web && has_host && !has_user && url.query().is_none() && !text.contains('#')
}

/// Masks the user of a URL, which may include a password. Such a URL is rejected, and must not be shown.
fn without_user(text: &str) -> String {
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{MASK}@{host}"),
        (None, Some((_, host))) => format!("{MASK}@{host}"),
        (_, None) => text.to_owned(),
    }
}

fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=LABEL_CHARS_MAX).contains(&text.len())
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_valid_value() {
        for setting in PROGRAM.settings {
            assert_eq!(setting.default.map_or(Ok(()), |text| setting.check(text)), Ok(()), "{}", setting.key);
            assert_eq!(setting.flag.is_none(), setting.is_secret, "{}", setting.key);
            assert!(setting.key.starts_with(PROGRAM.section), "{}", setting.key);
        }
        assert_eq!(PROGRAM.variable(&BRAKE_OBJECTS), "SINDRI__AGENT__BRAKE__OBJECTS");
    }

    #[test]
    fn a_broker_url_has_a_http_scheme_and_no_password() {
        for good in ["http://a", "https://a.example:8443", "http://[::1]:3000/prefix", "http://10.0.0.1:1"] {
            assert_eq!(BROKER_URL.check(good), Ok(()), "{good}");
        }
        for bad in ["", "a:1", "ftp://a", "http://", "https://me:pw@a", "http://a?b", "http://a#b", "http//a"] {
            assert!(BROKER_URL.check(bad).is_err(), "{bad}");
        }
        assert_eq!(BROKER_URL.redact("https://me:p@w@a:1"), "https://***@a:1");
    }

    #[test]
    fn namespaces_and_listen_addresses_are_validated() {
        for bad in ["", "Shop", "-a", "a-", "a.b"] {
            assert!(NAMESPACE.check(bad).is_err(), "{bad}");
        }
        for bad in ["9090", ":1", "a:", "a:x", "a:70000"] {
            assert!(LISTEN.check(bad).is_err(), "{bad}");
        }
        assert_eq!(
            (NAMESPACE.check("shop-1"), LISTEN.check("127.0.0.1:0"), LISTEN.check("")),
            (Ok(()), Ok(()), Ok(()))
        );
        assert!(NAMESPACE.check(&"a".repeat(64)).is_err());
    }

    /// Returns the table of settings as docs/operating.md must have it.
    fn settings_table() -> String {
        let mut table = "| in the file | flag | default | |\n|---|---|---|---|\n".to_owned();
        for setting in PROGRAM.settings {
            let flag = setting.flag.map_or_else(|| "none: it is secret".to_owned(), |flag| format!("`--{flag}`"));
            let default = match setting.default {
                None => "-".to_owned(),
                Some("") => "empty".to_owned(),
                Some(default) => format!("`{default}`"),
            };
            let mut help = setting.help.to_owned();
            if let SettingType::Choice(words) = setting.value_type {
                help.push_str(&format!(": `{}`", words.join("`, `")));
            }
            table.push_str(&format!("| `{}` | {flag} | {default} | {help} |\n", setting.key));
        }
        table
    }

    #[test]
    fn docs_operating_lists_every_setting() {
        let manual = include_str!("../../../../docs/operating.md");
        assert!(manual.contains(&settings_table()), "docs/operating.md must hold this table:\n{}", settings_table());
    }
}
