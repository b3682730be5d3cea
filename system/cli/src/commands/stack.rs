//! `sindri stack create` and `sindri delete`.

use clap::Subcommand;
use sindri_client::Client;
use sindri_model::GeneratorId;
use sindri_model::wire::{NewGenerator, NewStack};

use crate::failure::Failure;
use crate::names;
use crate::output::{print, print_or_fail};

/// The generator that is made for people who do not care about generators.
const DEFAULT_GENERATOR: &str = "default";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Creates a stack.
    Create {
        /// Its name.
        name: String,
        /// Whose it is, by name or id; without it the generator "default", made if need be.
        #[arg(long)]
        generator: Option<String>,
    },
}

pub(crate) async fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::Create { name, generator } => {
            let generator_id = owner(client, generator.as_deref()).await?;
            let stack = client.create_stack(&NewStack { name, description: None, generator_id }).await?;
            print(&format!("stack {} ({})\n", stack.name, stack.id))
        }
    }
}

/// A generator's key means that generator; the administrator may name one, or gets the default.
async fn owner(client: &Client, wanted: Option<&str>) -> Result<GeneratorId, Failure> {
    if let (None, Some(own)) = (wanted, client.whoami().await?.generator) {
        return Ok(own);
    }
    let generators = client.generators().await?;
    let name = wanted.unwrap_or(DEFAULT_GENERATOR);
    let found = generators.iter().find(|generator| generator.name == name || generator.id.to_string() == name);
    match (found, wanted) {
        (Some(generator), _) => Ok(generator.id),
        (None, Some(wanted)) => Err(Failure::Mistake(format!("there is no generator {wanted}"))),
        (None, None) => {
            let made = client.create_generator(&NewGenerator { name: name.to_owned(), description: None }).await?;
            print_or_fail(&format!(
                "generator {name} ({}), its key, shown this once: {}\n",
                made.generator.id, made.pak
            ))?;
            Ok(made.generator.id)
        }
    }
}

pub(crate) async fn delete(client: &Client, stack: &str) -> Result<(), Failure> {
    let stack = names::stack(client, stack).await?;
    client.delete_stack(stack.id).await?;
    print(&format!("stack {} is deleted; each agent that received it removes it\n", stack.name))
}
