//! One setting of a program: its names, the values that it takes, and how a value is displayed.

/// Displayed instead of a secret value.
pub const MASK: &str = "***";

/// Type of a setting's value.
#[derive(Clone, Copy, Debug)]
pub enum SettingType {
    /// Any text that is not empty.
    Text,
    /// Path of a file.
    Path,
    /// Integer in this range, both ends included.
    Count(u64, u64),
    /// `true` or `false`.
    Switch,
    /// One of these values.
    Choice(&'static [&'static str]),
    /// A type that the program defines.
    Custom(&'static CustomType),
}

/// Type of a setting's value that one program defines.
#[derive(Debug)]
pub struct CustomType {
    /// Placeholder of the value in the help of a flag.
    pub placeholder: &'static str,
    /// Returns true if a text is a valid value.
    pub is_valid: fn(&str) -> bool,
    /// Error message for an invalid value.
    pub expected: &'static str,
    /// Returns the text without its secret parts, whether it is valid or not.
    pub redact: fn(&str) -> String,
}

/// Type of a URL of an HTTP server.
const HTTP_URL: CustomType = CustomType {
    placeholder: "URL",
    is_valid: is_http_url,
    expected: "must be like http://HOST:PORT, without a user or a query",
    redact: |text| if is_http_url(text) { text.to_owned() } else { MASK.to_owned() },
};

fn is_http_url(text: &str) -> bool {
    let uri: Result<http::Uri, _> = text.parse();
    uri.is_ok_and(|uri| {
        let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some() && !has_user && uri.query().is_none()
    })
}

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Name in the file; sections are separated by dots.
    pub key: &'static str,
    /// Flag, without the dashes. A secret has none: every user of the machine can read the arguments of a process.
    pub flag: Option<&'static str>,
    /// Value that applies when no layer sets one; without a default the setting is unset.
    pub default: Option<&'static str>,
    /// Type of the value.
    pub value_type: SettingType,
    /// True if the value is never displayed.
    pub is_secret: bool,
    /// One sentence for the help.
    pub help: &'static str,
}

impl Setting {
    /// Creates a setting with a flag and without a default, whose value may be displayed.
    pub const fn plain(key: &'static str, flag: &'static str, value_type: SettingType, help: &'static str) -> Self {
        Self { key, flag: Some(flag), default: None, value_type, is_secret: false, help }
    }

    /// Creates a setting whose value is never displayed.
    pub const fn secret(key: &'static str, help: &'static str) -> Self {
        Self { key, flag: None, default: None, value_type: SettingType::Text, is_secret: true, help }
    }

    /// Returns the same setting with a default.
    pub const fn with_default(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    /// Creates the setting of the format of log lines.
    pub const fn log_format(key: &'static str) -> Self {
        let choices = SettingType::Choice(&["pretty", "json", "off"]);
        Self::plain(key, "log", choices, "Format of log lines (on standard error)").with_default("pretty")
    }

    /// Creates the setting of the minimum level of log lines.
    pub const fn log_level(key: &'static str) -> Self {
        let choices = SettingType::Choice(&["error", "warn", "info", "debug", "trace"]);
        Self::plain(key, "log-level", choices, "Minimum level of log lines").with_default("info")
    }

    /// Creates the setting of the collector of traces.
    pub const fn otlp_endpoint(key: &'static str) -> Self {
        let help = "URL of a collector to which traces are exported by OTLP over HTTP, such as http://collector:4318; \
                    without it, none are";
        Self::plain(key, "otlp-endpoint", SettingType::Custom(&HTTP_URL), help)
    }

    /// Checks that `text` is a valid value; fails with a description of the valid ones.
    pub fn check(&self, text: &str) -> Result<(), String> {
        let (is_valid, expected) = match self.value_type {
            SettingType::Text => (!text.is_empty(), "must not be empty".to_owned()),
            SettingType::Path => (!text.is_empty(), "must be a path".to_owned()),
            SettingType::Count(min, max) => (
                text.parse::<u64>().is_ok_and(|count| (min..=max).contains(&count)),
                format!("must be a number from {min} to {max}"),
            ),
            SettingType::Switch => (["true", "false"].contains(&text), "must be true or false".to_owned()),
            SettingType::Choice(choices) => (choices.contains(&text), format!("must be one of {}", choices.join(", "))),
            SettingType::Custom(custom) => ((custom.is_valid)(text), custom.expected.to_owned()),
        };
        if is_valid { Ok(()) } else { Err(expected) }
    }

    /// Returns a value of this setting without its secret parts.
    pub fn redact(&self, text: &str) -> String {
        match self.value_type {
            _ if self.is_secret => MASK.to_owned(),
            SettingType::Custom(custom) => (custom.redact)(text),
            SettingType::Text
            | SettingType::Path
            | SettingType::Count(..)
            | SettingType::Switch
            | SettingType::Choice(_) => text.to_owned(),
        }
    }
}
