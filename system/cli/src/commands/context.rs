//! `sindri context`: list, use, show, set and delete contexts.

use std::io;
use std::path::PathBuf;

use clap::Subcommand;

use crate::connect::parse_url;
use crate::contexts::{Context, ContextFile, ContextStore, Secret, check_name};
use crate::failure::Failure;
use crate::flags::Flags;
use crate::output::{self, Output};
use crate::resources::ContextRow;
use crate::secret_input::read_secret;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the contexts.
    List,
    /// Show one context, without its key.
    Show {
        /// Name of the context; by default the current one.
        name: Option<String>,
    },
    /// Make a context the current one.
    Use {
        /// Name of the context.
        name: String,
    },
    /// Create a context, or replace one, for the broker of `--broker`.
    ///
    /// The key is that of `--key-file`, whose path is stored, or is read from standard input and stored in the file of
    /// contexts; never that of a variable. Without a key the context uses `sindri login`. The first context is the current one.
    Set {
        /// Name of the context.
        name: String,
    },
    /// Delete a context, its key and the token of its login.
    Delete {
        /// Name of the context.
        name: String,
    },
}

pub(crate) async fn run(
    command: Command,
    flags: &Flags,
    store: Option<&ContextStore>,
    output: Output,
) -> Result<(), Failure> {
    let missing = || Failure::Usage("there is no home directory: set HOME or XDG_CONFIG_HOME".to_owned());
    let store = store.ok_or_else(missing)?;
    match command {
        Command::List => list(&store.read()?, flags, output),
        Command::Show { name } => show(&store.read()?, name.as_deref().or(flags.context.as_deref()), output),
        Command::Use { name } => select(store, &name, flags, output).await,
        Command::Set { name } => set(store, &name, flags, output).await,
        Command::Delete { name } => delete(store, &name, output).await,
    }
}

fn list(file: &ContextFile, flags: &Flags, output: Output) -> Result<(), Failure> {
    let rows: Vec<_> = file.contexts.iter().map(|(name, context)| ContextRow::new(file, name, context)).collect();
    output.print_list(&rows)?;
    note_override(flags);
    Ok(())
}

/// Says on standard error that variables are used instead of the current context.
fn note_override(flags: &Flags) {
    if let Some(note) = flags.describe_override() {
        output::note(&format!("note: {note}"));
    }
}

fn show(file: &ContextFile, name: Option<&str>, output: Output) -> Result<(), Failure> {
    let missing = || Failure::Usage("there is no current context: sindri context set creates one".to_owned());
    let (name, context) = file.select(name)?.ok_or_else(missing)?;
    output.print_object(&ContextRow::new(file, name, context))
}

async fn select(store: &ContextStore, name: &str, flags: &Flags, output: Output) -> Result<(), Failure> {
    let change = |file: &mut ContextFile| {
        file.find(name)?;
        file.current = Some(name.to_owned());
        Ok(ContextRow::new(file, name, file.find(name)?))
    };
    let row = store.change(change).await?;
    output.print_change(&row, &format!("context {name} is the current one"))?;
    note_override(flags);
    Ok(())
}

async fn set(store: &ContextStore, name: &str, flags: &Flags, output: Output) -> Result<(), Failure> {
    check_name(name)?;
    let missing = || Failure::Usage("the URL of the broker is required: set --broker".to_owned());
    let broker = flags.broker.clone().ok_or_else(missing)?;
    parse_url(&broker)?;
    if let Some(variable) = flags.key_variable() {
        return Err(Failure::Usage(format!(
            "{variable} is set, and a context does not store the key of a variable, which may be for another broker: unset it, \
             or set --key-file"
        )));
    }
    let key_file = absolute(flags.key_file.as_ref())?;
    let key = match (&flags.key, &key_file) {
        (Some(key), _) => Some(Secret(key.clone())),
        (None, Some(_)) => None,
        (None, None) => {
            let prompt = format!("access key for {broker} (empty for sindri login): ");
            read_secret(&prompt).await?.map(Secret)
        }
    };
    let context = Context { broker, broker_ca_file: absolute(flags.broker_ca_file.as_ref())?, key_file, key };
    let change = |file: &mut ContextFile| {
        let before = file.contexts.insert(name.to_owned(), context);
        // The token of a login is for the broker at which it was made.
        if before.is_some_and(|before| Some(&before.broker) != flags.broker.as_ref()) {
            delete_token(store, name)?;
        }
        file.current.get_or_insert_with(|| name.to_owned());
        Ok(ContextRow::new(file, name, file.find(name)?))
    };
    let row = store.change(change).await?;
    output.print_change(&row, &format!("context {name} is stored in {}", store.path().display()))
}

/// Makes the path of a file absolute: a context is used in any directory.
fn absolute(path: Option<&PathBuf>) -> Result<Option<PathBuf>, Failure> {
    let to_usage = |path: &PathBuf, error: io::Error| {
        Failure::Usage(format!("the file {} cannot be read: {error}", path.display()))
    };
    path.map(|path| std::fs::canonicalize(path).map_err(|error| to_usage(path, error))).transpose()
}

async fn delete(store: &ContextStore, name: &str, output: Output) -> Result<(), Failure> {
    let change = |file: &mut ContextFile| {
        let row = ContextRow::new(file, name, file.find(name)?);
        file.contexts.remove(name);
        file.current.take_if(|current| current == name);
        Ok(row)
    };
    let row = store.change(change).await?;
    delete_token(store, name)?;
    output.print_change(&row, &format!("context {name} is deleted"))
}

fn delete_token(store: &ContextStore, name: &str) -> Result<(), Failure> {
    let path = store.token_path(Some(name));
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::Operation(format!("{} cannot be deleted: {error}", path.display())))
        }
        _ => Ok(()),
    }
}
