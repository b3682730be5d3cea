//! `sindri version`: versions of this program and of the broker.

use clap::Args;
use serde::Serialize;
use sindri_process::VERSION;

use crate::connect::create_client_without_key;
use crate::failure::Failure;
use crate::output::{Cell, Column, Output, Resource};
use crate::settings::Settings;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Send no request to the broker.
    #[arg(long)]
    client: bool,
}

/// Versions of this program and of the broker.
#[derive(Serialize)]
struct Versions {
    client: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    broker: Option<String>,
}

impl Resource for Versions {
    const KIND: &'static str = "version";

    fn name(&self) -> String {
        self.client.to_owned()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("SINDRI", |versions: &Self| Cell::text(versions.client)),
            Column::new("BROKER", |versions: &Self| Cell::optional(versions.broker.as_ref())),
        ]
    }
}

/// Prints the versions. Without a broker that responds, prints that of this program and fails.
pub(crate) async fn run(arguments: &Arguments, settings: &Settings, output: Output) -> Result<(), Failure> {
    let client = VERSION;
    if arguments.client {
        return output.print_object(&Versions { client, broker: None });
    }
    let broker = match create_client_without_key(settings) {
        Ok(broker) => broker.get_broker_version().await.map_err(Failure::from),
        Err(failure) => Err(failure),
    };
    let (broker, failure) = match broker {
        Ok(version) => (Some(version), None),
        Err(failure) => (None, Some(failure)),
    };
    output.print_object(&Versions { client, broker })?;
    failure.map_or(Ok(()), Err)
}
