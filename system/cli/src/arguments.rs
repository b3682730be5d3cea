//! The whole command line: flags and one command.

use clap::Parser;
use sindri_process::VERSION;

use crate::command::Command;
use crate::flags::Flags;

/// Deploys stacks to Kubernetes clusters and shows their status.
#[derive(Parser)]
#[command(name = "sindri", version = VERSION)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub flags: Flags,
    #[command(subcommand)]
    pub command: Command,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Arguments;

    #[test]
    fn names_and_flags_are_unique() {
        Arguments::command().debug_assert();
    }
}
