//! Virtual time per real time, for both engines in the same run.
//!
//! A fleet of agents with five objects each polls at the default interval; every ten minutes a new revision is
//! submitted. Each engine runs the same world for a virtual time that fits its speed; the figure is the rate.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sindri_world::engine::Arm;
use sindri_world::isolate;
use sindri_world::ledger::Ledger;
use sindri_world::play::Play;
use sindri_world::run::POLLING_INTERVAL;
use sindri_world::scenario::{Fleet, Library, Scenario, Step, Submit};
use sindri_world::stage::{Options, SimulatedStage, Stage, Trouble};

use crate::explore::now;
use crate::output::write_json;

const OBJECTS: usize = 5;
const REVISION_EVERY: Duration = Duration::from_secs(10 * 60);
const SEED: u64 = 1;
/// What must hold.
const REAL_TIME_BAR: f64 = 10_000.0;
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
pub fn bench(json: Option<&Path>) -> Result<bool, String> {
    let mut figures = Vec::new();
    println!("{:<48} {:>14} {:>12}  holds", "figure", "measured", "bar");
    for world in &WORLDS {
        let agents = world.agents;
        let fast = rate(Arm::Fast, agents, world.fast)?;
        let turmoil = rate(Arm::Turmoil, agents, world.turmoil)?;
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

/// Virtual seconds per real second, from the first revision on.
fn rate(arm: Arm, agents: usize, lasts: Duration) -> Result<f64, String> {
    // The clocks of the simulated thread are virtual: this thread takes the time when that one says so.
    let (tell, told) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let world = scope.spawn(move || isolate(SEED, move || live(arm, agents, lasts, &tell)));
        let start = told.recv().ok().map(|()| now());
        let end = told.recv().ok().map(|()| now());
        let lived = world.join().map_err(|_| "the world panicked".to_owned())?;
        lived.map_err(|trouble| trouble.to_string())?;
        let elapsed = |start: Option<Instant>, end: Option<Instant>| Some(end?.duration_since(start?));
        let real = elapsed(start, end).ok_or("the world ended early")?;
        Ok(lasts.as_secs_f64() / real.as_secs_f64())
    })
}

fn live(arm: Arm, agents: usize, lasts: Duration, tell: &mpsc::Sender<()>) -> Result<(), Trouble> {
    let agents: Vec<String> = (1..=agents).map(|number| format!("agent-{number}")).collect();
    let ledger = Rc::new(RefCell::new(Ledger::default()));
    let options = Options {
        arm,
        seed: SEED,
        agents: agents.clone(),
        replicas: 1,
        namespace: None,
        brokers: 1,
        clocks_ahead: Duration::ZERO,
        polling_interval: POLLING_INTERVAL,
        kill_at: None,
        chaos: Vec::new(),
    };
    let mut stage = SimulatedStage::new(options, ledger.clone())?;
    let signal = || tell.send(()).map_err(|_| Trouble::Broken("nobody takes the time".to_owned()));
    signal()?;
    let end = stage.now() + lasts;
    for revision in 0.. {
        let scenario = Scenario::of_steps(Fleet::of(agents.clone()), vec![submit(revision)]);
        let library = Library::empty();
        Play::new(&mut stage, &library, &scenario, ledger.clone(), Duration::ZERO).steps()?;
        let left = end.saturating_sub(stage.now());
        stage.advance(left.min(REVISION_EVERY))?;
        if stage.now() >= end {
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
