//! Commands that a stand-in process knows.

use std::time::Duration;

use super::shell::{ScriptCommand, parse};

/// Longest sleep.
const SLEEP_MAX: Duration = Duration::from_secs(24 * 3600);

/// Effect of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It ends with this output, error output and exit code.
    Ends {
        stdout: String,
        stderr: String,
        exit_code: u8,
    },
    /// It copies its input to its output.
    CopiesInput,
    /// It reads its input to the end.
    ReadsInput,
    Sleeps(Duration),
    /// It ends its shell.
    Exits(Option<u8>),
    /// It runs these commands.
    Runs(Vec<ScriptCommand>),
    /// It reads commands from its input.
    ReadsCommands,
}

fn ends(exit_code: u8) -> Effect {
    Effect::Ends { stdout: String::new(), stderr: String::new(), exit_code }
}

fn prints(stdout: String) -> Effect {
    Effect::Ends { stdout, stderr: String::new(), exit_code: 0 }
}

fn fails(exit_code: u8, stderr: String) -> Effect {
    Effect::Ends { stdout: String::new(), stderr, exit_code }
}

fn missing_file(exit_code: u8, program: &str, path: &str) -> Effect {
    fails(exit_code, format!("{program}: {path}: No such file or directory\n"))
}

/// Returns the effect of a command. A command that is not known succeeds without output.
pub(super) fn run(words: &[String], variables: &[(String, String)]) -> Effect {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some((program, arguments)) = words.split_first() else { return ends(0) };
    let value = |wanted: &str| variables.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    match (program.rsplit('/').next().unwrap_or(program), arguments) {
        ("echo", ["-n", text @ ..]) => prints(text.join(" ")),
        ("echo", text) => prints(format!("{}\n", text.join(" "))),
        ("cat", [] | ["-"]) => Effect::CopiesInput,
        ("cat", ["/etc/hostname"]) | ("hostname", _) => prints(format!("{}\n", value("HOSTNAME").unwrap_or_default())),
        ("cat", [path, ..]) => missing_file(1, "cat", path),
        ("false" | "test" | "[", _) => ends(1),
        ("exit", [code, ..]) => Effect::Exits(Some(code.parse().unwrap_or(2))),
        ("exit", []) => Effect::Exits(None),
        ("sleep", [time, ..]) => Effect::Sleeps(parse_duration(time)),
        ("pwd", _) => prints("/\n".to_owned()),
        ("whoami", _) => prints("root\n".to_owned()),
        ("printenv", [name, ..]) => value(name).map_or(ends(1), |value| prints(format!("{value}\n"))),
        ("env" | "printenv", []) => prints(variables.iter().map(|(name, value)| format!("{name}={value}\n")).collect()),
        ("sh" | "bash" | "ash" | "dash", []) => Effect::ReadsCommands,
        ("sh" | "bash" | "ash" | "dash", arguments) => run_shell(arguments),
        ("tar", arguments) => run_tar(arguments),
        _ => ends(0),
    }
}

/// Returns the effect of a shell with arguments: the script after an option such as `-c` or `-ec`, or interactive commands.
fn run_shell(arguments: &[&str]) -> Effect {
    let is_option = |argument: &&&str| argument.starts_with('-');
    let options = arguments.iter().take_while(is_option).count();
    let has_script = arguments.iter().take(options).any(|option| !option.starts_with("--") && option.contains('c'));
    match (has_script, arguments.get(options)) {
        (true, Some(script)) => Effect::Runs(parse(script)),
        (true, None) => fails(2, "sh: -c requires an argument\n".to_owned()),
        (false, Some(_file)) => ends(0),
        (false, None) => Effect::ReadsCommands,
    }
}

/// Returns the effect of `tar`, as `kubectl cp` runs it: an archive is read and forgotten, and there are no files to write one from.
fn run_tar(arguments: &[&str]) -> Effect {
    let mode = arguments.first().copied().unwrap_or_default();
    if mode.contains('x') {
        return Effect::ReadsInput;
    }
    let path = arguments.last().copied().filter(|_| arguments.len() > 1).unwrap_or_default();
    fails(2, format!("tar: {path}: Cannot stat: No such file or directory\n"))
}

/// Returns the duration of a `sleep`: seconds, or a number with a unit; at most a day.
fn parse_duration(text: &str) -> Duration {
    if text == "infinity" {
        return SLEEP_MAX;
    }
    let (number, unit) = match text.char_indices().last() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3_600.0),
        Some((at, 'd')) => (&text[..at], 86_400.0),
        _ => (text, 1.0),
    };
    let seconds = number.parse::<f64>().unwrap_or_default() * unit;
    Duration::try_from_secs_f64(seconds).map_or(Duration::ZERO, |duration| duration.min(SLEEP_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_the_output_that_tests_rely_on() {
        let variables = [("HOSTNAME".to_owned(), "web-0".to_owned())];
        let effect = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            run(&words, &variables)
        };
        assert_eq!(effect(&["echo", "a", "b"]), prints("a b\n".to_owned()));
        assert_eq!(effect(&["/bin/echo", "-n", "a"]), prints("a".to_owned()));
        assert_eq!(effect(&["cat"]), Effect::CopiesInput);
        assert_eq!(effect(&["cat", "/nope"]), missing_file(1, "cat", "/nope"));
        assert_eq!(effect(&["hostname"]), prints("web-0\n".to_owned()));
        assert_eq!(effect(&["sleep", "2m"]), Effect::Sleeps(Duration::from_secs(120)));
        assert_eq!(effect(&["sleep", "1e300"]), Effect::Sleeps(Duration::ZERO));
        assert_eq!(effect(&["sh", "-ec", "exit 3"]), Effect::Runs(parse("exit 3")));
        assert_eq!(effect(&["nginx", "-s", "reload"]), ends(0));
        assert_eq!(effect(&["env"]), prints("HOSTNAME=web-0\n".to_owned()));
    }
}
