//! A large stack that is applied for the first time, over a bare client: it reads the bundle, makes a dry run of each object,
//! then an apply of each, as many at once as the agent has. As whoever takes no trouble, it asks for the whole object each time
//! and reads it; the agent does so for applies only. It notes nothing and watches nothing, and its objects carry no marks: how
//! much of the difference that makes, the same calls with as many marks as the agent's show, and a client that has its duties.
//!
//! Twice: with what an application consists of, and with the least that an object can be, where the calls cost so little
//! that everything else shows.

use std::time::Duration;

use sindri_figures::{Bar, Sheet, median};
use sindri_model::{Bundle, Checksum};
use tokio::time::{Instant, sleep};

use super::application;
use super::dutiful;
use super::ground::Place;
use super::hands::{self, Hands, all, words};
use super::objects::{self, NAMESPACE, Part, bundle, mark, namespace, namespace_path};

const OBJECTS: usize = 1_000;
/// As many as the agent has under way.
pub const AT_ONCE: usize = 8;
/// Rounds of all of them, whose medians count.
const ROUNDS: usize = 9;
/// So that nobody is measured while others still look at what was done.
const SETTLE: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_secs(30);
const MEASURE_MAX: Duration = Duration::from_secs(600);
/// The stack of objects that are of no stack.
const NOBODYS: &str = "00000000-0000-4000-8000-000000000000";
const RATIO_BAR: Bar = Bar::AtMost(1.3);

/// What is applied.
struct Sort {
    what: &'static str,
    parts: fn(&str) -> Vec<Part>,
}

const SORTS: [Sort; 2] = [
    Sort { what: "objects", parts: |prefix| application::parts(prefix, OBJECTS) },
    Sort { what: "small ConfigMaps", parts: |prefix| objects::parts(prefix, OBJECTS, "one") },
];

/// Measures a first apply.
pub fn measure(place: &Place<'_>, sheet: &mut Sheet) -> Result<(), String> {
    SORTS.iter().try_for_each(|sort| measure_sort(place, sort, sheet))
}

fn measure_sort(place: &Place<'_>, sort: &Sort, sheet: &mut Sheet) -> Result<(), String> {
    let ground = place.start(INTERVAL)?;
    let rounds = ground.drive(MEASURE_MAX, async |hands: &Hands| {
        for part in application::rights() {
            hands::apply(&hands.someone, &part.path, "", &part.manifest).await?;
        }
        hands::apply(&hands.cluster, &namespace_path(NAMESPACE), "", &namespace(NAMESPACE)).await?;
        // A server hears of rights as everybody hears of anything.
        sleep(SETTLE).await;
        // Whoever is asked first warms the server for the other.
        bare(hands, &(sort.parts)("warm"), Objects::AsDeclared).await?;
        let mut rounds = Vec::with_capacity(ROUNDS);
        for round in 0..ROUNDS {
            sleep(SETTLE).await;
            let plain = bare(hands, &(sort.parts)(&format!("bare-{round}")), Objects::AsDeclared).await?;
            sleep(SETTLE).await;
            let marked = bare(hands, &(sort.parts)(&format!("marked-{round}")), Objects::Marked).await?;
            sleep(SETTLE).await;
            let name = format!("dutiful-{round}");
            let dutiful = dutiful::apply(hands, &name, &(sort.parts)(&name)).await?.as_secs_f64();
            sleep(SETTLE).await;
            let stack = format!("apply-{round}");
            let agent = by_agent(hands, &stack, &bundle(&(sort.parts)(&stack))).await?.as_secs_f64();
            let (calls, bare) = (plain.calls.as_secs_f64(), plain.all.as_secs_f64());
            rounds.push(Round { calls, bare, marked: marked.calls.as_secs_f64(), dutiful, agent });
        }
        Ok(rounds)
    })?;
    let name = |what: &str| place.figure(&format!("{OBJECTS} {} applied, {what}", sort.what));
    let figure = |of: fn(&Round) -> f64| median(rounds.iter().map(of).collect());
    sheet.add(&name("a bare client"), figure(|round| round.bare), "s", Bar::None);
    sheet.add(&name("a client with the agent's duties"), figure(|round| round.dutiful), "s", Bar::None);
    sheet.add(&name("the agent"), figure(|round| round.agent), "s", Bar::None);
    sheet.add(&name("over the bare client"), figure(|round| round.agent / round.bare), "ratio", RATIO_BAR);
    sheet.add(&name("over its calls alone"), figure(|round| round.agent / round.calls), "ratio", RATIO_BAR);
    sheet.add(&name("over calls with its marks"), figure(|round| round.agent / round.marked), "ratio", RATIO_BAR);
    sheet.add(&name("over a client with its duties"), figure(|round| round.agent / round.dutiful), "ratio", RATIO_BAR);
    sheet.add(&name("its marks over calls alone"), figure(|round| round.marked / round.calls), "ratio", Bar::None);
    sheet.add(&name("its duties over calls alone"), figure(|round| round.dutiful / round.calls), "ratio", Bar::None);
    Ok(())
}

/// Seconds of one round.
struct Round {
    calls: f64,
    bare: f64,
    marked: f64,
    dutiful: f64,
    agent: f64,
}

/// What a bare client sends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Objects {
    AsDeclared,
    Marked,
}

/// How long a bare client took.
struct Bare {
    /// With what any client has to do first: to read the text of the bundle.
    all: Duration,
    /// For the dry runs and the applies.
    calls: Duration,
}

async fn bare(hands: &Hands, parts: &[Part], sent: Objects) -> Result<Bare, String> {
    let text = bundle(parts);
    let began = Instant::now();
    let mut objects = Bundle::parse(&text).map_err(|error| error.to_string())?.into_objects();
    if sent == Objects::Marked {
        let (stack, checksum) = (NOBODYS.parse().map_err(words)?, Checksum::of(&text));
        objects.iter_mut().for_each(|object| mark(object, stack, &checksum));
    }
    let read = began.elapsed();
    for query in ["&dryRun=All", ""] {
        let objects = parts.iter().zip(&objects);
        let applying = objects.map(|(part, object)| hands::apply(&hands.cluster, &part.path, query, &object.manifest));
        all(AT_ONCE, applying).await?;
    }
    let all = began.elapsed();
    Ok(Bare { all, calls: all - read })
}

/// From when the broker has all of the revision until it knows that it is applied. Nothing is left of it for the next.
async fn by_agent(hands: &Hands, stack: &str, bundle: &str) -> Result<Duration, String> {
    let (stack, revision) = hands.declare(stack, bundle).await?;
    let took = hands.time_to_apply(revision).await?;
    hands.remove(stack).await?;
    Ok(took)
}
