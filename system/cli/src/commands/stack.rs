//! `sindri stack create` and `sindri delete`.

use clap::Subcommand;
use sindri_client::Client;
use sindri_model::GeneratorId;
use sindri_model::wire::{NewGenerator, NewStack};

use crate::failure::Failure;
use crate::names;
use crate::output::{print, print_or_fail};

/// Generator that is created for operators who do not use generators.
const DEFAULT_GENERATOR: &str = "default";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create a stack.
    Create {
        /// Name of the stack.
        name: String,
        /// Name or id of the generator that owns the stack; by default "default", which is created if it does not exist.
        #[arg(long)]
        generator: Option<String>,
    },
}

pub(crate) async fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::Create { name, generator } => {
            let generator_id = find_or_create_generator(client, generator.as_deref()).await?;
            let stack = client.create_stack(&NewStack { name, description: None, generator_id }).await?;
            print(&format!("stack {} ({})\n", stack.name, stack.id))
        }
    }
}

/// Returns the id of the generator with the name or id `requested`. Without one, returns the key's own generator, or
/// for an administrator the default generator, which is created if it does not exist.
async fn find_or_create_generator(client: &Client, requested: Option<&str>) -> Result<GeneratorId, Failure> {
    if let (None, Some(own)) = (requested, client.whoami().await?.generator) {
        return Ok(own);
    }
    let generators = client.list_generators().await?;
    let name = requested.unwrap_or(DEFAULT_GENERATOR);
    let found = generators.iter().find(|generator| generator.name == name || generator.id.to_string() == name);
    match (found, requested) {
        (Some(generator), _) => Ok(generator.id),
        (None, Some(requested)) => Err(Failure::Usage(format!("there is no generator {requested}"))),
        (None, None) => {
            let created = client.create_generator(&NewGenerator { name: name.to_owned(), description: None }).await?;
            print_or_fail(&format!(
                "generator {name} ({}), key, shown only once: {}\n",
                created.generator.id, created.pak
            ))?;
            Ok(created.generator.id)
        }
    }
}

pub(crate) async fn delete(client: &Client, stack: &str) -> Result<(), Failure> {
    let stack = names::find_stack(client, stack).await?;
    client.delete_stack(stack.id).await?;
    print(&format!("stack {} is deleted; each agent that received it removes its objects\n", stack.name))
}
