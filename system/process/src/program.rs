//! Description of a program. Flags, environment variables, file, `--print-config` and checks are derived from it.

use crate::setting::Setting;

/// Version of every program: that of the project, and in a release also the commit that it was built from.
pub const VERSION: &str = match option_env!("SINDRI_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// One program.
#[derive(Debug)]
pub struct Program {
    /// Name of the binary.
    pub name: &'static str,
    /// Version of the release.
    pub version: &'static str,
    /// One sentence for the help.
    pub about: &'static str,
    /// Prefix of every environment variable.
    pub prefix: &'static str,
    /// Prefix of every key in the file, such as `agent.`; variable names leave it out. May be empty.
    pub section: &'static str,
    /// Table of settings, in the order of `--print-config`.
    pub settings: &'static [&'static Setting],
    /// Constraints between settings.
    pub rules: &'static [Rule],
    /// Setting whose variable is the example in the help.
    pub example: &'static Setting,
    /// Returns the subcommands.
    pub commands: fn() -> Vec<clap::Command>,
}

/// Constraint between two settings.
#[derive(Debug)]
pub enum Rule {
    /// Both are set, or neither.
    Together(&'static Setting, &'static Setting),
    /// At most one of them is set.
    OneAtMost(&'static Setting, &'static Setting),
}

impl Program {
    /// Returns the name of a setting's environment variable.
    pub fn variable(&self, setting: &Setting) -> String {
        let key = setting.key.strip_prefix(self.section).unwrap_or(setting.key);
        format!("{}{}", self.prefix, key.to_uppercase().replace('.', "__"))
    }
}

/// A program for the tests of this crate.
#[cfg(test)]
pub(crate) mod example {
    use super::{Program, Rule};
    use crate::setting::{CustomType, Setting, SettingType};

    const ADDRESS: CustomType = CustomType {
        placeholder: "HOST:PORT",
        is_valid: |text| text.contains(':'),
        expected: "must be like HOST:PORT",
        redact: str::to_uppercase,
    };
    pub const LISTEN: Setting =
        Setting::plain("a.listen", "listen", SettingType::Custom(&ADDRESS), "Address to listen on")
            .with_default("127.0.0.1:1");
    pub const WORKERS: Setting =
        Setting::plain("a.workers", "workers", SettingType::Count(1, 256), "Threads").with_default("1");
    pub const SWITCH: Setting =
        Setting::plain("a.switch", "switch", SettingType::Switch, "On or off").with_default("false");
    pub const LEVEL: Setting = Setting::log_level("a.log.level");
    pub const KEY: Setting = Setting::secret("a.key", "A key");
    pub const KEY_FILE: Setting = Setting::plain("a.key_file", "key-file", SettingType::Path, "File with the key");
    pub const CERTIFICATE: Setting = Setting::plain("a.certificate", "certificate", SettingType::Path, "A certificate");
    pub const CHAIN: Setting = Setting::plain("a.chain", "chain", SettingType::Path, "Its chain");

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
