//! The process of an exec or an attach.

use std::collections::VecDeque;
use std::time::Duration;

use super::commands::{self, Effect};
use super::program::{Program, StandardStreams};
use super::shell::{self, Condition, Destination, ScriptCommand};
use super::terminal::Terminal;

/// Exit code of a process that was interrupted on its terminal.
const INTERRUPTED: u8 = 130;
const PROMPT: &[u8] = b"/ # ";
/// Longest line of an interactive shell in bytes.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Number of commands after which a process lets others go on.
const COMMANDS_BETWEEN_YIELDS: usize = 100;
/// Largest number of nested scripts between two lines of input: a script in a variable may run itself.
const SCRIPTS_MAX: usize = 1_000;
/// Largest number of commands that wait to be run.
const COMMANDS_MAX: usize = 100_000;

/// Output stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Output {
    Stdout,
    Stderr,
}

/// Next step of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It writes.
    Write(Output, Vec<u8>),
    /// It does nothing for this time.
    Sleep(Duration),
    /// It computes; others may go on first.
    Yield,
    /// It waits for input.
    Read,
    /// It has ended.
    Exit(u8),
}

/// Use of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// It is copied to an output, if there is one.
    Copy(Option<Output>),
    /// It is dropped.
    Discard,
    /// The process of a container without input runs on.
    Never,
    /// The commands of the script are run, and then those of an interactive shell.
    Commands { is_interactive: bool },
}

/// A process.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    steps: VecDeque<Step>,
    script: VecDeque<ScriptCommand>,
    reading: Reading,
    /// Use of the input after the current command.
    next_reading: Reading,
    variables: Vec<(String, String)>,
    exit_code: u8,
    has_exited: bool,
    terminal: Option<Terminal>,
    is_prompted: bool,
    input: VecDeque<u8>,
    input_has_ended: bool,
    /// Commands since the process last let others go on.
    busy_commands: usize,
    /// Nested scripts since the last line of input.
    nested_scripts: usize,
}

impl Process {
    /// Starts a program with these streams.
    pub(crate) fn start(program: Program, streams: StandardStreams) -> Self {
        let shell = Reading::Commands { is_interactive: false };
        let mut process = Self {
            steps: VecDeque::new(),
            script: VecDeque::new(),
            reading: shell,
            next_reading: shell,
            variables: Vec::new(),
            exit_code: 0,
            has_exited: false,
            terminal: streams.tty.then(Terminal::default),
            is_prompted: false,
            input: VecDeque::new(),
            input_has_ended: !streams.stdin,
            busy_commands: 0,
            nested_scripts: 0,
        };
        match program {
            Program::Fixed { stdout, stderr, exit_code } => {
                process.write(Output::Stdout, stdout.into_bytes());
                process.write(Output::Stderr, stderr.into_bytes());
                process.exit_code = exit_code;
            }
            Program::Command { arguments, variables } => {
                process.variables = variables;
                process.script.push_back(ScriptCommand::from_arguments(&arguments));
            }
            Program::Attached { log } => {
                process.write(Output::Stdout, log.into_bytes());
                process.reading = if streams.stdin { Reading::Copy(Some(Output::Stdout)) } else { Reading::Never };
            }
        }
        process
    }

    /// Passes input to the process. Returns true if it was interrupted, so that it no longer sleeps.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> bool {
        let Some(terminal) = &mut self.terminal else {
            self.input.extend(bytes);
            return false;
        };
        let typed = terminal.receive(bytes);
        if !typed.echo.is_empty() {
            self.steps.push_back(Step::Write(Output::Stdout, typed.echo));
        }
        if typed.is_interrupted {
            self.interrupt();
        }
        self.input.extend(typed.input);
        self.input_has_ended |= typed.has_ended;
        typed.is_interrupted
    }

    /// Ends the input of the process.
    pub(crate) fn end_input(&mut self) {
        self.input_has_ended = true;
    }

    /// True if it can keep input for later; otherwise input must wait until it reads.
    pub(crate) fn accepts_input(&self) -> bool {
        self.terminal.is_some() || self.input.is_empty()
    }

    fn interrupt(&mut self) {
        self.input.clear();
        self.steps.retain(|step| matches!(step, Step::Write(..)));
        self.script.clear();
        let interactive = Reading::Commands { is_interactive: true };
        if [self.reading, self.next_reading].contains(&interactive) {
            (self.reading, self.next_reading) = (interactive, interactive);
            (self.exit_code, self.is_prompted) = (INTERRUPTED, false);
        } else {
            self.exit(INTERRUPTED);
        }
    }

    fn exit(&mut self, exit_code: u8) {
        (self.exit_code, self.has_exited) = (exit_code, true);
    }

    /// Returns the next step. After [`Step::Read`] the caller passes input, or its end, and asks again.
    pub(crate) fn next(&mut self) -> Step {
        loop {
            if let Some(step) = self.steps.pop_front() {
                return step;
            }
            if self.has_exited {
                return Step::Exit(self.exit_code);
            }
            if self.busy_commands >= COMMANDS_BETWEEN_YIELDS {
                self.busy_commands = 0;
                return Step::Yield;
            }
            match self.reading {
                Reading::Never => return Step::Read,
                Reading::Copy(output) if !self.input.is_empty() => {
                    let input = Vec::from(std::mem::take(&mut self.input));
                    output.into_iter().for_each(|output| self.write(output, input.clone()));
                }
                Reading::Discard if !self.input.is_empty() => self.input.clear(),
                Reading::Copy(_) | Reading::Discard if self.input_has_ended => self.reading = self.next_reading,
                Reading::Copy(_) | Reading::Discard => return Step::Read,
                Reading::Commands { is_interactive } => match self.script.pop_front() {
                    Some(command) => {
                        self.busy_commands += 1;
                        self.run(&command);
                    }
                    None if !is_interactive => self.has_exited = true,
                    None => {
                        if !self.read_commands() {
                            return Step::Read;
                        }
                    }
                },
            }
        }
    }

    fn write(&mut self, output: Output, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            // A terminal has one output.
            let step = match &self.terminal {
                Some(_) => Step::Write(Output::Stdout, Terminal::show(&bytes)),
                None => Step::Write(output, bytes),
            };
            self.steps.push_back(step);
        }
    }

    /// Reads the next line of an interactive shell, or its end. Returns false if more input is needed.
    fn read_commands(&mut self) -> bool {
        if self.terminal.is_some() && !self.is_prompted {
            self.is_prompted = true;
            self.steps.push_back(Step::Write(Output::Stdout, PROMPT.to_vec()));
            return true;
        }
        let end = self.input.iter().position(|byte| *byte == b'\n').map(|end| end + 1);
        let is_last = self.input_has_ended || self.input.len() > LINE_BYTES_MAX;
        let Some(end) = end.or_else(|| is_last.then_some(self.input.len())) else { return false };
        let line: Vec<u8> = self.input.drain(..end).collect();
        self.is_prompted = false;
        self.busy_commands += 1;
        self.nested_scripts = 0;
        self.has_exited = line.is_empty();
        self.script.extend(shell::parse(&String::from_utf8_lossy(&line)));
        true
    }

    /// Runs the commands of a nested script next. Too many of them end the process with an error.
    fn run_nested(&mut self, commands: Vec<ScriptCommand>) {
        self.nested_scripts += 1;
        // To parse a script is the longest work of a process.
        self.busy_commands = COMMANDS_BETWEEN_YIELDS;
        if self.nested_scripts > SCRIPTS_MAX || self.script.len() + commands.len() > COMMANDS_MAX {
            self.write(Output::Stderr, b"sh: too many commands\n".to_vec());
            return self.exit(2);
        }
        commands.into_iter().rev().for_each(|command| self.script.push_front(command));
    }

    fn run(&mut self, command: &ScriptCommand) {
        let is_run = match command.condition {
            Condition::Always => true,
            Condition::Success => self.exit_code == 0,
            Condition::Failure => self.exit_code != 0,
            Condition::Never => false,
        };
        if !is_run {
            return;
        }
        let exit_code = self.exit_code;
        let words = command.expand(|name| match name {
            "?" => exit_code.to_string(),
            name => self
                .variables
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.clone())
                .unwrap_or_default(),
        });
        let to = match command.destination {
            Destination::Stdout => Some(Output::Stdout),
            Destination::Stderr => Some(Output::Stderr),
            Destination::Nowhere => None,
        };
        self.exit_code = 0;
        match commands::run(&words, &self.variables) {
            Effect::Ends { stdout, stderr, exit_code } => {
                to.into_iter().for_each(|to| self.write(to, stdout.clone().into_bytes()));
                self.write(Output::Stderr, stderr.into_bytes());
                self.exit_code = exit_code;
            }
            Effect::CopiesInput => (self.next_reading, self.reading) = (self.reading, Reading::Copy(to)),
            Effect::ReadsInput => (self.next_reading, self.reading) = (self.reading, Reading::Discard),
            Effect::Sleeps(duration) => self.steps.push_back(Step::Sleep(duration)),
            Effect::Exits(code) => self.exit(code.unwrap_or(exit_code)),
            Effect::Runs(commands) => self.run_nested(commands),
            Effect::ReadsCommands => {
                self.reading = Reading::Commands { is_interactive: true };
                self.next_reading = self.reading;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(arguments: &[&str], tty: bool) -> Process {
        let arguments = arguments.iter().map(|one| (*one).to_owned()).collect();
        let variables = vec![("A".to_owned(), "b".to_owned())];
        let streams = StandardStreams { stdin: true, stdout: true, stderr: !tty, tty };
        Process::start(Program::Command { arguments, variables }, streams)
    }

    /// Runs a process with its whole input, and returns stdout, stderr and the exit code.
    fn run(mut process: Process, input: &str) -> (String, String, u8) {
        let (mut stdout, mut stderr, mut input) = (Vec::new(), Vec::new(), Some(input));
        for _ in 0..1_000 {
            match process.next() {
                Step::Write(Output::Stdout, bytes) => stdout.extend(bytes),
                Step::Write(Output::Stderr, bytes) => stderr.extend(bytes),
                Step::Sleep(_) | Step::Yield => {}
                Step::Read => match input.take() {
                    Some(input) => drop(process.receive(input.as_bytes())),
                    None => process.end_input(),
                },
                Step::Exit(code) => {
                    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("a text");
                    return (text(stdout), text(stderr), code);
                }
            }
        }
        panic!("the process does not end: {process:?}");
    }

    #[test]
    fn scripts_run() {
        let cases = [
            ("echo one && echo $A $?", "one\nb 0\n", "", 0),
            ("false || echo no; exit 3; echo never", "no\n", "", 3),
            ("false", "", "", 1),
            ("echo oops >&2; sh -c 'exit 4'", "", "oops\n", 4),
            ("cat; echo done", "input\ndone\n", "", 0),
            ("cat /nope", "", "cat: /nope: No such file or directory\n", 1),
            ("sleep 1; echo late", "late\n", "", 0),
            ("tar xf - && echo $?", "0\n", "", 0),
            ("echo a | tr a b", "a\n", "", 0),
        ];
        for (script, stdout, stderr, code) in cases {
            let expected = (stdout.to_owned(), stderr.to_owned(), code);
            assert_eq!(run(start(&["sh", "-c", script], false), "input\n"), expected, "{script}");
        }
    }

    #[test]
    fn a_shell_reads_commands_from_its_input() {
        assert_eq!(run(start(&["sh"], false), "echo a\nexit 7\necho b\n"), ("a\n".to_owned(), String::new(), 7));
        let mut slow = start(&["sh"], false);
        assert_eq!(slow.next(), Step::Read);
        slow.receive(b"echo ");
        assert_eq!(slow.next(), Step::Read, "a line may arrive in parts");
        assert_eq!(run(slow, "late\n"), ("late\n".to_owned(), String::new(), 0));
        assert_eq!(run(start(&["sh"], false), "echo a; false"), ("a\n".to_owned(), String::new(), 1));
    }

    #[test]
    fn a_terminal_shows_what_is_typed() {
        let (shown, _, code) = run(start(&["sh"], true), "echo a\r\x04");
        assert_eq!((shown.as_str(), code), ("/ # echo a\r\na\r\n/ # ", 0));
        let (shown, _, code) = run(start(&["cat"], true), "abc\x03");
        assert_eq!((shown.as_str(), code), ("abc^C\r\n", INTERRUPTED));
    }

    #[test]
    fn a_process_that_does_not_read_ends_without_input() {
        assert_eq!(start(&["nginx", "-t"], false).next(), Step::Exit(0));
    }

    #[test]
    fn an_attached_process_writes_its_log_and_returns_its_input() {
        let streams = StandardStreams { stdin: true, stdout: true, ..StandardStreams::default() };
        let process = Process::start(Program::Attached { log: "started\n".to_owned() }, streams);
        assert_eq!(run(process, "hello\n"), ("started\nhello\n".to_owned(), String::new(), 0));
        let streams = StandardStreams { stdin: false, ..streams };
        let mut silent = Process::start(Program::Attached { log: String::new() }, streams);
        assert_eq!((silent.next(), silent.next()), (Step::Read, Step::Read), "it runs until its container ends");
    }

    #[test]
    fn a_script_that_runs_itself_ends_with_an_error() {
        let scripts = ["sh -c \"$LOOP\"", "sh -c \"$LOOP\"; sh -c \"$LOOP\""];
        for script in scripts {
            let mut process = start(&["sh", "-c", script], false);
            process.variables.push(("LOOP".to_owned(), script.to_owned()));
            let mut yields = 0;
            let code = (0..10_000).find_map(|_| match process.next() {
                Step::Exit(code) => Some(code),
                step => {
                    yields += usize::from(step == Step::Yield);
                    None
                }
            });
            assert_eq!(code, Some(2), "{script}");
            assert!(yields > 100, "{yields}: others go on in the meantime");
        }
    }

    #[test]
    fn a_long_input_of_a_shell_takes_linear_time() {
        let mut process = start(&["sh"], false);
        process.receive(":\n".repeat(100_000).as_bytes());
        process.end_input();
        let yields = std::iter::from_fn(|| Some(process.next())).take_while(|step| *step == Step::Yield).count();
        assert!((1_000..3_000).contains(&yields), "{yields}");
    }

    proptest::proptest! {
        #[test]
        fn every_script_ends(script in "[a-z $;&|>'\"\\\\{}0-9\n-]{0,80}", input in ".{0,40}", tty: bool) {
            let process = start(&["sh", "-c", &script], tty);
            if !script.contains("sh") {
                let _output = run(process, &input);
            }
        }
    }
}
