//! One setting: its names, what it may be, and how it is shown.

/// What stands where something secret would.
pub const MASK: &str = "***";

/// What a setting may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Any text that is not empty.
    Text,
    /// A path of a file.
    Path,
    /// A whole number between these two.
    Count(u64, u64),
    /// `true` or `false`.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// What only this program knows.
    Form(&'static Form),
}

/// What a program says of a kind of its own.
#[derive(Debug)]
pub struct Form {
    /// What stands for it in the help of a flag.
    pub placeholder: &'static str,
    /// Whether a text is one.
    pub fits: fn(&str) -> bool,
    /// What is said of a text that is none.
    pub expected: &'static str,
    /// The text as it may be shown, whether it fits or not.
    pub shown: fn(&str) -> String,
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

impl Setting {
    /// A setting with a flag, without a default, that everyone may see.
    pub const fn plain(key: &'static str, flag: &'static str, kind: Kind, help: &'static str) -> Self {
        Self { key, flag: Some(flag), default: None, kind, is_secret: false, help }
    }

    /// A setting that nobody may see.
    pub const fn secret(key: &'static str, help: &'static str) -> Self {
        Self { key, flag: None, default: None, kind: Kind::Text, is_secret: true, help }
    }

    /// The same setting with a default.
    pub const fn or(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    /// How to write log lines.
    pub const fn log_form(key: &'static str) -> Self {
        let words = Kind::Choice(&["pretty", "json", "off"]);
        Self::plain(key, "log", words, "How to write log lines (to standard error)").or("pretty")
    }

    /// Which log lines to write.
    pub const fn log_level(key: &'static str) -> Self {
        let words = Kind::Choice(&["error", "warn", "info", "debug", "trace"]);
        Self::plain(key, "log-level", words, "The least important lines to write").or("info")
    }

    /// Whether it may be `text`; if not, what is expected instead.
    pub fn check(&self, text: &str) -> Result<(), String> {
        let (fits, expected) = match self.kind {
            Kind::Text => (!text.is_empty(), "a text".to_owned()),
            Kind::Path => (!text.is_empty(), "a path".to_owned()),
            Kind::Count(min, max) => (
                text.parse::<u64>().is_ok_and(|count| (min..=max).contains(&count)),
                format!("must be a number from {min} to {max}"),
            ),
            Kind::Switch => (["true", "false"].contains(&text), "must be true or false".to_owned()),
            Kind::Choice(words) => (words.contains(&text), format!("must be one of {}", words.join(", "))),
            Kind::Form(form) => ((form.fits)(text), form.expected.to_owned()),
        };
        if fits { Ok(()) } else { Err(expected) }
    }

    /// The value as it may be shown.
    pub fn shown(&self, text: &str) -> String {
        match self.kind {
            _ if self.is_secret => MASK.to_owned(),
            Kind::Form(form) => (form.shown)(text),
            Kind::Text | Kind::Path | Kind::Count(..) | Kind::Switch | Kind::Choice(_) => text.to_owned(),
        }
    }
}
