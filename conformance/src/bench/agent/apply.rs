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
const ROUNDS: usize = 3 * ORDERS.len();
/// In a round everybody has each place, and comes after everybody else, equally often: what the one before has left in the
/// server's memory, or freed there, may make a difference.
const ORDERS: [[Client; 4]; 4] = [
    [Client::Bare, Client::Marked, Client::Agent, Client::Dutiful],
    [Client::Marked, Client::Dutiful, Client::Bare, Client::Agent],
    [Client::Dutiful, Client::Agent, Client::Marked, Client::Bare],
    [Client::Agent, Client::Bare, Client::Dutiful, Client::Marked],
];
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
        let mut rounds = Vec::with_capacity(ROUNDS);
        for number in 0..ROUNDS {
            // It does not count: it warms the server, and everybody who is first in a round comes after the same.
            sleep(SETTLE).await;
            bare(hands, &(sort.parts)(&format!("warm-{number}")), Objects::AsDeclared).await?;
            let mut round = Round::default();
            for client in ORDERS[number % ORDERS.len()] {
                sleep(SETTLE).await;
                round.take(client, number, hands, sort).await?;
            }
            rounds.push(round);
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

/// Who applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Client {
    Bare,
    Marked,
    Dutiful,
    Agent,
}

impl Client {
    /// What its objects are called after.
    fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Marked => "marked",
            Self::Dutiful => "dutiful",
            Self::Agent => "apply",
        }
    }
}

/// Seconds of one round.
#[derive(Default)]
struct Round {
    calls: f64,
    bare: f64,
    marked: f64,
    dutiful: f64,
    agent: f64,
}

impl Round {
    /// Lets one of the clients apply.
    async fn take(&mut self, client: Client, number: usize, hands: &Hands, sort: &Sort) -> Result<(), String> {
        let name = format!("{}-{number}", client.name());
        let parts = (sort.parts)(&name);
        match client {
            Client::Bare => {
                let took = bare(hands, &parts, Objects::AsDeclared).await?;
                (self.calls, self.bare) = (took.calls.as_secs_f64(), took.all.as_secs_f64());
            }
            Client::Marked => self.marked = bare(hands, &parts, Objects::Marked).await?.calls.as_secs_f64(),
            Client::Dutiful => self.dutiful = dutiful::apply(hands, &name, &parts).await?.as_secs_f64(),
            Client::Agent => self.agent = by_agent(hands, &name, &bundle(&parts)).await?.as_secs_f64(),
        }
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn everybody_has_each_place_and_comes_after_everybody_else_equally_often() {
        let places: BTreeSet<_> = ORDERS.iter().flat_map(|order| order.iter().enumerate()).collect();
        assert_eq!(places.len(), 16, "four clients in four places");
        let pairs: BTreeSet<_> = ORDERS.iter().flat_map(|order| order.windows(2)).collect();
        assert_eq!(pairs.len(), 12, "each after three others");
    }
}
