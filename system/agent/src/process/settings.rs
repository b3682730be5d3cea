//! Every setting of the agent, said once.

use http::Uri;
use sindri_process::{Form, Kind, MASK, Program, Rule, Setting};

/// Says what would be done.
pub const PLAN: &str = "plan";
/// Lists what nobody declares any more.
pub const ORPHANS: &str = "orphans";
/// Runs the agent, as it does when no command is given.
pub const RUN: &str = "run";

/// The longest name that Kubernetes gives a namespace.
const LABEL_CHARS_MAX: usize = 63;

const URL: Form = Form {
    placeholder: "URL",
    fits: is_url,
    expected: "must be like http://HOST:PORT or https://HOST, without a user, a query or a fragment",
    shown: without_user,
};
const NAMESPACE_NAME: Form = Form {
    placeholder: "NAME",
    fits: is_label,
    expected: "must be the name of a namespace: small letters, digits and dashes, at most 63",
    shown: str::to_owned,
};
const ADDRESS: Form = Form {
    placeholder: "HOST:PORT",
    fits: |text| text.is_empty() || is_address(text),
    expected: "must be like HOST:PORT, or empty",
    shown: str::to_owned,
};

/// Who it is.
pub const NAME: Setting =
    Setting::plain("agent.name", "name", Kind::Text, "The name under which the broker knows this agent");
/// Where it is.
pub const CLUSTER_NAME: Setting = Setting::plain(
    "agent.cluster_name",
    "cluster",
    Kind::Text,
    "The name under which the broker knows the cluster of this agent",
);
/// Whom it asks.
pub const BROKER_URL: Setting = Setting::plain("agent.broker_url", "broker", Kind::Form(&URL), "The broker's address");
/// Whom it believes.
pub const BROKER_CA_FILE: Setting = Setting::plain(
    "agent.broker_ca_file",
    "broker-ca-file",
    Kind::Path,
    "Authorities in PEM that may issue the broker's certificate, in place of those that the machine trusts",
);
/// Its key.
pub const PAK: Setting = Setting::secret("agent.pak", "The access key of this agent");
/// Where its key is.
pub const PAK_FILE: Setting = Setting::plain(
    "agent.pak_file",
    "pak-file",
    Kind::Path,
    "A file that holds the access key and that not everybody can read",
);
/// Its cluster.
pub const KUBECONFIG: Setting = Setting::plain(
    "agent.kubeconfig",
    "kubeconfig",
    Kind::Path,
    "The kubeconfig of the cluster; without it the service account of the pod is used",
);
/// Which of the clusters in the kubeconfig.
pub const CONTEXT: Setting =
    Setting::plain("agent.context", "context", Kind::Text, "The context of the kubeconfig, if not its current one");
/// How often it polls.
pub const POLLING_INTERVAL: Setting = Setting::plain(
    "agent.polling_interval",
    "polling-interval",
    Kind::Count(1, 86_400),
    "Seconds between two polls of the broker",
)
.or("30");
/// How much of the cluster is its own.
pub const NAMESPACE: Setting = Setting::plain(
    "agent.namespace",
    "namespace",
    Kind::Form(&NAMESPACE_NAME),
    "The one namespace that it may touch; without it, the whole cluster",
);
/// What it does about changes of others.
pub const DRIFT: Setting = Setting::plain(
    "agent.drift",
    "drift",
    Kind::Choice(&["off", "detect", "correct"]),
    "What to do about objects that somebody else changed",
)
.or("correct");
/// Whether it stops before it deletes much.
pub const BRAKE_ENABLED: Setting = Setting::plain(
    "agent.brake.enabled",
    "brake-enabled",
    Kind::Switch,
    "Whether deleting much of a stack at once waits for an approval",
)
.or("true");
/// How much that is.
pub const BRAKE_OBJECTS: Setting = Setting::plain(
    "agent.brake.objects",
    "brake-objects",
    Kind::Count(0, 1_000_000),
    "So many objects of a stack may always be deleted at once",
)
.or("5");
/// How much that is, of all.
pub const BRAKE_PERCENT: Setting = Setting::plain(
    "agent.brake.percent",
    "brake-percent",
    Kind::Count(0, 100),
    "This part of a stack, in percent, may always be deleted at once",
)
.or("50");
/// Whether it makes sure to be the only one.
pub const LEASE: Setting = Setting::plain(
    "agent.lease",
    "lease",
    Kind::Switch,
    "Whether to hold a Lease in the cluster, so that two agents of one name never work at once",
)
.or("true");
/// Which of several processes it is.
pub const IDENTITY: Setting = Setting::plain(
    "agent.identity",
    "identity",
    Kind::Text,
    "The name of this process in the Lease; without it, the name of the pod, or of the machine with the process's number",
);
/// Who may ask how it does.
pub const LISTEN: Setting = Setting::plain(
    "agent.listen",
    "listen",
    Kind::Form(&ADDRESS),
    "Where to answer /healthz, /readyz and /metrics; port 0 takes a free one, empty answers nobody",
)
.or("");
/// How to write log lines.
pub const LOG_FORM: Setting = Setting::log_form("agent.log.form");
/// Which lines to write.
pub const LOG_LEVEL: Setting = Setting::log_level("agent.log.level");

/// The agent.
pub static PROGRAM: Program = Program {
    name: "sindri-agent",
    version: env!("CARGO_PKG_VERSION"),
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
        &DRIFT,
        &BRAKE_ENABLED,
        &BRAKE_OBJECTS,
        &BRAKE_PERCENT,
        &LEASE,
        &IDENTITY,
        &LISTEN,
        &LOG_FORM,
        &LOG_LEVEL,
    ],
    rules: &[Rule::OneAtMost(&PAK, &PAK_FILE)],
    example: &PAK,
    commands,
};

fn commands() -> Vec<clap::Command> {
    let command = |name, about| clap::Command::new(name).about(about);
    vec![
        command(RUN, "Runs the agent, as without a command"),
        command(PLAN, "Shows what the agent would do, and does nothing"),
        command(ORPHANS, "Lists objects that carry the agent's marks and that no stack declares"),
    ]
}

fn is_url(text: &str) -> bool {
    let Ok(url) = text.parse::<Uri>() else { return false };
    let is_web = matches!(url.scheme_str(), Some("http" | "https"));
    let has_host = url.host().is_some_and(|host| !host.is_empty());
    let has_user = url.authority().is_some_and(|authority| authority.as_str().contains('@'));
    is_web && has_host && !has_user && url.query().is_none() && !text.contains('#')
}

/// An address with a user may hold a password; it is not taken, and not shown either.
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
    fn every_default_is_a_value_that_the_setting_takes() {
        for setting in PROGRAM.settings {
            assert_eq!(setting.default.map_or(Ok(()), |text| setting.check(text)), Ok(()), "{}", setting.key);
            assert_eq!(setting.flag.is_none(), setting.is_secret, "{}", setting.key);
            assert!(setting.key.starts_with(PROGRAM.section), "{}", setting.key);
        }
        assert_eq!(PROGRAM.variable(&BRAKE_OBJECTS), "SINDRI__AGENT__BRAKE__OBJECTS");
    }

    #[test]
    fn an_address_is_of_the_web_and_holds_no_password() {
        for good in ["http://a", "https://a.example:8443", "http://[::1]:3000/prefix", "http://10.0.0.1:1"] {
            assert_eq!(BROKER_URL.check(good), Ok(()), "{good}");
        }
        for bad in ["", "a:1", "ftp://a", "http://", "https://me:pw@a", "http://a?b", "http://a#b", "http//a"] {
            assert!(BROKER_URL.check(bad).is_err(), "{bad}");
        }
        assert_eq!(BROKER_URL.shown("https://me:p@w@a:1"), "https://***@a:1");
    }

    #[test]
    fn namespaces_and_addresses_to_listen_on_are_checked() {
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

    /// The table of the manual, as it must be.
    fn manual() -> String {
        let mut table = "| in the file | flag | default | |\n|---|---|---|---|\n".to_owned();
        for setting in PROGRAM.settings {
            let flag = setting.flag.map_or_else(|| "none: it is secret".to_owned(), |flag| format!("`--{flag}`"));
            let default = match setting.default {
                None => "-".to_owned(),
                Some("") => "empty".to_owned(),
                Some(default) => format!("`{default}`"),
            };
            let mut help = setting.help.to_owned();
            if let Kind::Choice(words) = setting.kind {
                help.push_str(&format!(": `{}`", words.join("`, `")));
            }
            table.push_str(&format!("| `{}` | {flag} | {default} | {help} |\n", setting.key));
        }
        table
    }

    #[test]
    fn the_manual_has_every_setting_as_it_is() {
        let manual_now = include_str!("../../../../docs/operating.md");
        assert!(manual_now.contains(&manual()), "docs/operating.md must hold this table:\n{}", manual());
    }
}
