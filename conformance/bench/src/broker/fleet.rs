//! The list of the fleet, whose cost must not depend on the number of events.

use std::borrow::Cow;
use std::time::Duration;

use super::http_load::{LoadGenerator, get};
use super::prepare::BrokerData;
use super::server::Bench;
use crate::figures::{Bar, Figures, median};

const AGENTS: usize = 10;
const EVENTS: usize = 30_000;
const CONNECTIONS: usize = 4;
const ROUNDS: usize = 5;
const SPAN: Duration = Duration::from_secs(1);

/// Measures the list without events and with many.
pub fn measure(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    let server = bench.start_broker(&bench.create_directory("fleet")?, &["--log", "off"])?;
    let mut data = BrokerData::connect(bench, &server)?;
    let generator = data.create_generator()?;
    let agents = data.create_agents(&generator, "agent", AGENTS)?;
    let stacks = data.create_stacks(&generator, "stack", AGENTS)?;
    for agent in &agents {
        data.add_targets(&agent.id, &stacks)?;
    }
    let revisions = data.submit_revisions(&stacks)?;
    let mut load = LoadGenerator::connect(server.address, CONNECTIONS)?;
    let request = get("/api/v1/fleet", &server.key, None);
    let mut rate = || -> Result<f64, String> {
        let mut rates = Vec::new();
        for _ in 0..ROUNDS {
            rates.push(load.run_for(SPAN, 200, || Cow::Borrowed(&request))?.rate);
        }
        Ok(median(rates))
    };
    let without = rate()?;
    for agent in &agents {
        data.report_events(&agent.id, &revisions, EVENTS / AGENTS)?;
    }
    let with = rate()?;
    figures.add("list of the fleet, without events", without, "/s", Bar::None);
    figures.add("list of the fleet, 30,000 events", with, "/s", Bar::None);
    figures.add("list of the fleet, 30,000 events per without", with / without, "ratio", Bar::AtLeast(0.8));
    Ok(())
}
