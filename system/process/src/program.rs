//! A program as it describes itself: flags, environment, file, `--print-config` and checks all follow this.

use crate::setting::Setting;

/// One program.
#[derive(Debug)]
pub struct Program {
    /// Of its binary.
    pub name: &'static str,
    /// Of its release.
    pub version: &'static str,
    /// One sentence for people.
    pub about: &'static str,
    /// What the name of every variable in the environment begins with.
    pub prefix: &'static str,
    /// What the key of every setting in the file begins with, and its variable does not: `agent.`, or nothing.
    pub section: &'static str,
    /// The table, in the order in which it is shown.
    pub settings: &'static [&'static Setting],
    /// What holds between settings.
    pub rules: &'static [Rule],
    /// One of the settings, for the help.
    pub example: &'static Setting,
    /// What it can be asked to do besides running.
    pub commands: fn() -> Vec<clap::Command>,
}

/// What holds between two settings.
#[derive(Debug)]
pub enum Rule {
    /// Both or neither.
    Together(&'static Setting, &'static Setting),
    /// One of them at most.
    OneAtMost(&'static Setting, &'static Setting),
}

impl Program {
    /// The variable of a setting in the environment.
    pub fn variable(&self, setting: &Setting) -> String {
        let key = setting.key.strip_prefix(self.section).unwrap_or(setting.key);
        format!("{}{}", self.prefix, key.to_uppercase().replace('.', "__"))
    }
}

/// A program for the tests of this crate.
#[cfg(test)]
pub(crate) mod example {
    use super::{Program, Rule};
    use crate::setting::{Form, Kind, Setting};

    const ADDRESS: Form = Form {
        placeholder: "HOST:PORT",
        fits: |text| text.contains(':'),
        expected: "must be like HOST:PORT",
        shown: str::to_uppercase,
    };
    pub const LISTEN: Setting =
        Setting::plain("a.listen", "listen", Kind::Form(&ADDRESS), "Where to listen").or("127.0.0.1:1");
    pub const WORKERS: Setting = Setting::plain("a.workers", "workers", Kind::Count(1, 256), "Threads").or("1");
    pub const SWITCH: Setting = Setting::plain("a.switch", "switch", Kind::Switch, "On or off").or("false");
    pub const LEVEL: Setting = Setting::log_level("a.log.level");
    pub const KEY: Setting = Setting::secret("a.key", "A key");
    pub const KEY_FILE: Setting = Setting::plain("a.key_file", "key-file", Kind::Path, "Where the key is");
    pub const CERTIFICATE: Setting = Setting::plain("a.certificate", "certificate", Kind::Path, "A certificate");
    pub const CHAIN: Setting = Setting::plain("a.chain", "chain", Kind::Path, "Its chain");

    pub static PROGRAM: Program = Program {
        name: "sindri-a",
        version: "1.2.3",
        about: "Tests.",
        prefix: "SINDRI__A__",
        section: "a.",
        settings: &[&LISTEN, &WORKERS, &SWITCH, &LEVEL, &KEY, &KEY_FILE, &CERTIFICATE, &CHAIN],
        rules: &[Rule::OneAtMost(&KEY, &KEY_FILE), Rule::Together(&CERTIFICATE, &CHAIN)],
        example: &LEVEL,
        commands: || vec![clap::Command::new("look").arg(clap::Arg::new("where"))],
    };
}
