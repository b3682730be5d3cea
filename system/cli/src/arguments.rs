//! The whole command line: flags and one command.

use clap::Parser;
use sindri_process::VERSION;

use crate::command::Command;
use crate::flags::Flags;

const EXAMPLES: &str = "\
Examples:
  sindri context set production --broker https://broker.example   # asks for the access key
  sindri agent create east --cluster production --new-key-file east.key
  sindri stack create shop
  sindri target shop east
  sindri apply shop --file shop.yaml
  sindri status shop
  sindri agent list --output json";

/// Deploys stacks to Kubernetes clusters and shows their status.
#[derive(Parser)]
#[command(name = "sindri", version = VERSION, after_help = EXAMPLES)]
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
