//! Makes the scenario of a random world from its seed.

use std::time::Duration;

use sindri_agent::Limits;

use super::faults::RandomFaults;
use super::operators::{operate, submit_without};
use super::people::act;
use super::pools::{CLUSTERS, STACKS, choose, choose_weighted};
use super::random_stack::RandomStack;
use super::sequences::make_sequence;
use crate::rng::SeededRng;
use crate::scenario::{Fleet, Scenario, Span, Step};

/// Fewest and most operations of a world.
const OPERATIONS: (u64, u64) = (10, 60);

/// Makes the world of a seed.
pub fn generate(seed: u64) -> Scenario {
    let mut rng = SeededRng::new(seed, "world");
    let fleet = choose_fleet(&mut rng);
    let faults = RandomFaults::choose(&mut rng);
    let mut generator = Generator { stacks: choose_stacks(&mut rng), steps: Vec::new(), ends: Vec::new(), rng };
    generator.make_steps(&fleet, &faults);
    let mut scenario = Scenario::from_steps(fleet, generator.steps);
    scenario.name = format!("world-{seed}");
    scenario.title = format!("random world {seed}");
    scenario.world = true;
    scenario
}

fn choose_fleet(rng: &mut SeededRng) -> Fleet {
    let count = choose_weighted(rng, &[(10, 1), (8, 2), (2, 3), (1, 5)]);
    let agents = CLUSTERS[..count].iter().map(|name| (*name).to_owned()).collect();
    let brokers = choose_weighted(rng, &[(8, 1), (2, 2), (1, 3)]);
    let replicas = choose_weighted(rng, &[(3, 1), (1, 2)]);
    let clocks_ahead = Span(Duration::from_secs(choose_weighted(rng, &[(6, 0), (1, 30), (1, 3_600)])));
    Fleet { replicas, brokers, clocks_ahead, limits: choose_limits(rng), ..Fleet::from_agents(agents) }
}

/// Chooses limits of the agents: often so small that each boundary is reached.
fn choose_limits(rng: &mut SeededRng) -> Limits {
    let defaults = Limits::default();
    let mut choose =
        |default, small: &[(u64, usize)]| if rng.chance(1, 2) { default } else { choose_weighted(rng, small) };
    Limits {
        inventory_chunk_entries: choose(defaults.inventory_chunk_entries, &[(1, 1), (1, 2), (1, 5)]),
        list_page: choose(defaults.list_page, &[(1, 1), (1, 2), (1, 7)]),
        requests_in_flight: choose(defaults.requests_in_flight, &[(1, 1), (1, 2), (1, 4)]),
        passes: choose(defaults.passes, &[(1, 1), (1, 2)]),
    }
}

fn choose_stacks(rng: &mut SeededRng) -> Vec<RandomStack> {
    let count = rng.between(2, STACKS.len() as u64) as usize;
    STACKS[..count].iter().map(|name| RandomStack::new(name)).collect()
}

struct Generator {
    rng: SeededRng,
    stacks: Vec<RandomStack>,
    steps: Vec<Step>,
    /// Steps that end a fault, each with the number of the operation before which it comes.
    ends: Vec<(u64, Step)>,
}

impl Generator {
    fn make_steps(&mut self, fleet: &Fleet, faults: &RandomFaults) {
        let operations = self.rng.between(OPERATIONS.0, OPERATIONS.1);
        for number in 0..operations {
            self.end_faults(|due, _| due <= number);
            let index = (self.rng.next_u64() % self.stacks.len() as u64) as usize;
            let stack = &mut self.stacks[index];
            match choose_weighted(&mut self.rng, &[(45, 0), (25, 1), (20, 2), (10, 3)]) {
                1 if stack.is_submitted() => self.let_people_act(index, fleet),
                3 if stack.is_submitted() => {
                    let sequence = make_sequence(&mut self.rng, &mut self.stacks, index, fleet);
                    self.let_operator_act(sequence);
                }
                2 if faults.is_some() => {
                    let (begin, end) = faults.make(&mut self.rng, fleet);
                    self.steps.extend(begin);
                    let due = number + self.rng.between(1, 5);
                    self.ends.extend(end.map(|end| (due, end)));
                }
                _ => {
                    let operation = operate(&mut self.rng, stack, &fleet.agents);
                    self.let_operator_act(operation);
                }
            }
            let pause = self.pause();
            self.steps.push(pause);
        }
    }

    /// Adds an action on an object of a stack. Sometimes the next revision drops that object at about the same time.
    fn let_people_act(&mut self, index: usize, fleet: &Fleet) {
        let stack = &mut self.stacks[index];
        let object = choose(&mut self.rng, &stack.object_keys()).clone();
        self.steps.extend(act(&mut self.rng, stack, &object, &fleet.agents));
        if self.rng.chance(1, 4) {
            let submit = submit_without(stack, &object);
            let pause = self.pause();
            self.steps.push(pause);
            self.let_operator_act(submit.into_iter().collect());
        }
    }

    /// Adds an operation. Operators wait until the broker works: otherwise it would be open whether they were heard.
    fn let_operator_act(&mut self, operation: Vec<Step>) {
        self.end_faults(|_, end| is_end_of_broker_fault(end));
        self.steps.extend(operation);
    }

    /// Adds the steps that end faults and that `is_chosen` chooses.
    fn end_faults(&mut self, is_chosen: impl Fn(u64, &Step) -> bool) {
        let (chosen, kept) = std::mem::take(&mut self.ends).into_iter().partition(|(due, end)| is_chosen(*due, end));
        self.ends = kept;
        let chosen: Vec<(u64, Step)> = chosen;
        self.steps.extend(chosen.into_iter().map(|(_, end)| end));
    }

    /// Lets some time pass: often the middle of a pass, sometimes several polls.
    fn pause(&mut self) -> Step {
        let millis = match self.rng.between(0, 9) {
            0..=3 => self.rng.between(1, 100),
            4..=6 => self.rng.between(100, 3_000),
            7 | 8 => self.rng.between(3_000, 40_000),
            _ => self.rng.between(40_000, 200_000),
        };
        Step::Advance(Span(Duration::from_millis(millis)))
    }
}

fn is_end_of_broker_fault(step: &Step) -> bool {
    match step {
        Step::Restart(host) | Step::Continue(host) => host.starts_with("broker"),
        Step::Resume | Step::ResumeFor(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_one_world_and_another_seed_another() {
        let steps = |seed| format!("{:?}", generate(seed).steps);
        assert_eq!(steps(7), steps(7));
        assert_ne!(steps(7), steps(8));
    }
}
