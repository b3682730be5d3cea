//! `sindri completion` and `sindri man`: files for shells and for `man`.

use std::path::PathBuf;

use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output::print;

/// A shell with completion.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum SupportedShell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Args)]
pub(crate) struct CompletionArguments {
    /// Shell for which the script is.
    shell: SupportedShell,
}

#[derive(Args)]
pub(crate) struct ManArguments {
    /// Directory for the pages; it is created if there is none.
    directory: PathBuf,
}

/// Prints the script of a shell.
pub(crate) fn print_script(arguments: &CompletionArguments, mut command: Command) -> Result<(), Failure> {
    let shell = match arguments.shell {
        SupportedShell::Bash => Shell::Bash,
        SupportedShell::Zsh => Shell::Zsh,
        SupportedShell::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "sindri", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Writes one page per command.
pub(crate) fn write_pages(arguments: &ManArguments, command: Command) -> Result<(), Failure> {
    let directory = &arguments.directory;
    let to_failure =
        |error| Failure::Operation(format!("the pages cannot be written to {}: {error}", directory.display()));
    std::fs::create_dir_all(directory).map_err(to_failure)?;
    clap_mangen::generate_to(command, directory).map_err(to_failure)
}
