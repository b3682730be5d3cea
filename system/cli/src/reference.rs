//! The list of commands in docs/cli.md, generated from their descriptions and compared with the committed page.

use clap::{Arg, ArgAction, Command, CommandFactory};

use crate::arguments::Arguments;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
const BEGIN: &str = "<!-- commands: generated -->\n";
const END: &str = "<!-- end of commands -->";

/// Formats a table with every command and its first sentence.
fn format_commands(command: &Command) -> String {
    let mut lines = vec!["| command | |".to_owned(), "|---|---|".to_owned()];
    add_commands(command, "sindri", &mut lines);
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn add_commands(parent: &Command, path: &str, lines: &mut Vec<String>) {
    let is_listed = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    for command in parent.get_subcommands().filter(is_listed) {
        let path = format!("{path} {}", command.get_name());
        if command.has_subcommands() {
            add_commands(command, &path, lines);
            continue;
        }
        let about = command.get_about().map(ToString::to_string).unwrap_or_default().replace('|', "\\|");
        let end = if about.ends_with(['.', '?']) || about.is_empty() { "" } else { "." };
        lines.push(format!("| `{path}{}` | {about}{end} |", format_arguments(command)));
    }
}

/// Formats required arguments as they are, and others in brackets.
fn format_arguments(command: &Command) -> String {
    let is_own = |argument: &&Arg| !argument.is_hide_set() && !argument.is_global_set() && argument.get_id() != "help";
    let (positional, flags): (Vec<_>, Vec<_>) =
        command.get_arguments().filter(is_own).partition(|argument| argument.is_positional());
    positional.into_iter().chain(flags).map(|argument| format!(" {}", format_argument(argument))).collect()
}

fn format_argument(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let value = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let takes_value = argument.get_action().takes_values();
    let text = match argument.get_long() {
        Some(long) if takes_value => format!("--{long} {value}"),
        Some(long) => format!("--{long}"),
        None => value,
    };
    let is_repeated = matches!(argument.get_action(), ArgAction::Append)
        || argument.get_num_args().is_some_and(|range| range.max_values() > 1);
    let text = if is_repeated { format!("{text}…") } else { text };
    if argument.is_required_set() { text } else { format!("[{text}]") }
}

#[test]
fn the_page_has_every_command() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("docs/cli.md has the mark of the list");
    let (_, after) = rest.split_once(END).expect("docs/cli.md has the mark of the end of the list");
    let mut command = Arguments::command();
    command.build();
    let current = format!("{before}{BEGIN}{}{END}{after}", format_commands(&command));
    if is_update_requested() {
        std::fs::write(PAGE, &current).unwrap();
        return;
    }
    assert!(page == current, "docs/cli.md is old: UPDATE=1 cargo test -p sindri-cli --bin sindri the_page_has");
}

/// Returns true if the page is to be written instead of compared.
fn is_update_requested() -> bool {
    #[expect(clippy::disallowed_methods, reason = "a test is a program of its own")]
    std::env::var("UPDATE").is_ok()
}
