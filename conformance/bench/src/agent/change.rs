//! Calls to the API server for a stack in which every object has changed.

use std::time::Duration;

use tokio::time::sleep;

use super::clients::{Clients, apply};
use super::environment::Setup;
use super::objects::{NAMESPACE, bundle, config_maps, namespace, namespace_path};
use crate::figures::{Bar, Figures};

const OBJECTS: usize = 100;
/// A dry run and an apply of each object, and a few calls around them.
const CALLS_MAX: usize = 2 * OBJECTS + 10;
/// The agent's default, so that hardly any poll falls into the counted time.
const INTERVAL: Duration = Duration::from_secs(30);
/// Time for calls that follow a change, such as those caused by watch events; they count too.
const SETTLE: Duration = Duration::from_secs(2);
const MEASURE_MAX: Duration = Duration::from_secs(120);

/// Measures the calls of a change.
pub fn measure(setup: &Setup<'_>, figures: &mut Figures) -> Result<(), String> {
    let environment = setup.start(INTERVAL)?;
    let calls = environment.run(MEASURE_MAX, async |clients: &Clients| {
        apply(&clients.cluster, &namespace_path(NAMESPACE), "", &namespace(NAMESPACE)).await?;
        let (stack, first) = clients.declare("change", &bundle(&config_maps("change", OBJECTS, "one"))).await?;
        clients.wait_until_applied(&[first]).await?;
        sleep(SETTLE).await;
        let before = clients.agent_counts().await?;
        let second = clients.submit(stack, &bundle(&config_maps("change", OBJECTS, "two"))).await?;
        clients.wait_until_applied(&[second]).await?;
        sleep(SETTLE).await;
        Ok(clients.agent_counts().await?.since(&before).calls())
    })?;
    let name = setup.figure_name(&format!("a stack of {OBJECTS} changed, calls"));
    figures.add(&name, calls as f64, "calls", Bar::AtMost(CALLS_MAX as f64));
    Ok(())
}
