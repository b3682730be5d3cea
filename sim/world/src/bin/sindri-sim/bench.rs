//! Virtual time per real time, for both engines in the same run.
//!
//! A fleet of agents with five objects each polls at the default interval; every ten minutes a new revision is
//! submitted. Each engine runs the same world for a virtual time that fits its speed; the figure is the ratio.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sindri_world::engine::EngineKind;
use sindri_world::environment::{Environment, Options, SimulatedWorld, StepError};
use sindri_world::expected_state::ExpectedState;
use sindri_world::interpreter::Interpreter;
use sindri_world::isolate;
use sindri_world::run::POLLING_INTERVAL;
use sindri_world::scenario::{Fleet, Library, Scenario, Step, Submit};

use crate::output::write_json;
use crate::real_time::now;

const OBJECTS: usize = 5;
const REVISION_EVERY: Duration = Duration::from_secs(10 * 60);
const SEED: u64 = 1;
/// Least virtual time per real time of the fast engine with three agents.
const REAL_TIME_BAR: f64 = 10_000.0;
/// Least ratio of the fast engine to turmoil.
const TURMOIL_BAR: f64 = 30.0;

struct World {
    agents: usize,
    fast: Duration,
    turmoil: Duration,
}

const WORLDS: [World; 2] = [
    World { agents: 3, fast: Duration::from_secs(6 * 3600), turmoil: Duration::from_secs(1200) },
    World { agents: 30, fast: Duration::from_secs(3600), turmoil: Duration::from_secs(120) },
];

/// Measures and prints; the JSON is a list of figures.
pub fn run_bench(json: Option<&Path>) -> Result<bool, String> {
    let mut figures = Vec::new();
    println!("{:<48} {:>14} {:>12}  holds", "figure", "measured", "bar");
    for world in &WORLDS {
        let agents = world.agents;
        let fast = measure(EngineKind::Fast, agents, world.fast)?;
        let turmoil = measure(EngineKind::Turmoil, agents, world.turmoil)?;
        let bar = (agents == 3).then_some(REAL_TIME_BAR);
        figures.push(figure(&format!("{agents} agents, fast, virtual per real time"), fast, bar));
        figures.push(figure(&format!("{agents} agents, turmoil, virtual per real time"), turmoil, None));
        figures.push(figure(&format!("{agents} agents, fast per turmoil"), fast / turmoil, Some(TURMOIL_BAR)));
    }
    if let Some(file) = json {
        write_json(file, &Value::Array(figures))?;
    }
    Ok(true)
}

fn figure(name: &str, value: f64, bar: Option<f64>) -> Value {
    let holds = bar.is_none_or(|bar| value >= bar);
    let shown = bar.map_or("-".to_owned(), |bar| format!(">= {bar}"));
    println!("{name:<48} {value:>14.0} {shown:>12}  {}", if holds { "holds" } else { "FALLS SHORT" });
    json!({"area": "sim", "name": name, "value": value, "unit": "ratio", "bar": bar, "holds": holds})
}

/// Returns virtual seconds per real second, from the first revision on.
fn measure(engine: EngineKind, agents: usize, lasts: Duration) -> Result<f64, String> {
    // The clocks of the simulated thread are virtual: this thread measures real time between its two signals.
    let (sender, signals) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let world = scope.spawn(move || isolate(SEED, move || simulate(engine, agents, lasts, &sender)));
        let start = signals.recv().ok().map(|()| now());
        let end = signals.recv().ok().map(|()| now());
        let result = world.join().map_err(|_| "the simulation panicked".to_owned())?;
        result.map_err(|error| error.to_string())?;
        let elapsed = |start: Option<Instant>, end: Option<Instant>| Some(end?.duration_since(start?));
        let real = elapsed(start, end).ok_or("the world ended early")?;
        Ok(lasts.as_secs_f64() / real.as_secs_f64())
    })
}

fn simulate(engine: EngineKind, agents: usize, lasts: Duration, sender: &mpsc::Sender<()>) -> Result<(), StepError> {
    let agents: Vec<String> = (1..=agents).map(|number| format!("agent-{number}")).collect();
    let expected = Rc::new(RefCell::new(ExpectedState::default()));
    let fleet = Fleet::from_agents(agents);
    let options = Options::new(engine, SEED, fleet.clone(), POLLING_INTERVAL);
    let mut world = SimulatedWorld::new(options, expected.clone())?;
    let signal = || sender.send(()).map_err(|_| StepError::Failed("the measuring thread has ended".to_owned()));
    signal()?;
    let end = world.now() + lasts;
    for revision in 0.. {
        let scenario = Scenario::from_steps(fleet.clone(), vec![submit(revision)]);
        let library = Library::empty();
        Interpreter::new(&mut world, &library, &scenario, expected.clone(), Duration::ZERO).run_steps()?;
        let left = end.saturating_sub(world.now());
        world.advance(left.min(REVISION_EVERY))?;
        if world.now() >= end {
            break;
        }
    }
    signal()
}

fn submit(revision: u32) -> Step {
    let objects: Vec<String> = (0..OBJECTS)
        .map(|number| {
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: part-{number}}}\ndata: {{revision: \"{revision}\"}}\n"
            )
        })
        .collect();
    Step::Submit(Submit { stack: "parts".to_owned(), bundle: None, yaml: Some(objects.join("---\n")), to: None })
}
