//! Reduces a failing world to a short scenario that violates the same property.

use super::reduction::{
    drop_chunk, drop_documents, drop_field_of_fault, list_smaller_fleets, merge_pauses, round_pauses,
};
use crate::scenario::Scenario;

/// A reduced scenario.
#[derive(Clone, Debug)]
pub struct Minimised {
    /// The scenario.
    pub scenario: Scenario,
    /// Number of runs that it took.
    pub runs: u32,
}

/// Reduces a scenario as long as `fails` holds for the smaller one and `is_time_left` says so.
pub fn minimise(scenario: &Scenario, fails: impl Fn(&Scenario) -> bool, is_time_left: impl Fn() -> bool) -> Minimised {
    let mut search = Search { best: scenario.clone(), runs: 0, fails: &fails, is_time_left: &is_time_left };
    loop {
        let before = search.best.to_yaml();
        search.drop_steps();
        search.try_all(list_smaller_fleets);
        search.try_all(drop_documents);
        search.try_all(drop_field_of_fault);
        search.try_all(merge_pauses);
        search.try_all(round_pauses);
        if search.best.to_yaml() == before || !is_time_left() {
            return Minimised { scenario: search.best, runs: search.runs };
        }
    }
}

struct Search<'a> {
    best: Scenario,
    runs: u32,
    fails: &'a dyn Fn(&Scenario) -> bool,
    is_time_left: &'a dyn Fn() -> bool,
}

impl Search<'_> {
    fn accept(&mut self, candidate: Scenario) -> bool {
        self.runs += 1;
        let fails = (self.fails)(&candidate);
        if fails {
            self.best = candidate;
        }
        fails
    }

    /// Drops steps, first large chunks and then smaller ones (delta debugging).
    fn drop_steps(&mut self) {
        let mut size = self.best.steps.iter().count().div_ceil(2);
        while size > 0 && (self.is_time_left)() {
            let mut start = 0;
            while let Some(candidate) = drop_chunk(&self.best, start, size).filter(|_| (self.is_time_left)()) {
                if !self.accept(candidate) {
                    start += size;
                }
            }
            size /= 2;
        }
    }

    /// Tries every candidate of a list; after a success the list of the smaller scenario.
    fn try_all(&mut self, list: impl Fn(&Scenario) -> Vec<Scenario>) {
        let (mut candidates, mut tried) = (list(&self.best), 0);
        while tried < candidates.len() && (self.is_time_left)() {
            if self.accept(candidates[tried].clone()) {
                candidates = list(&self.best);
            } else {
                tried += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::generate;
    use super::*;
    use crate::scenario::Step;

    #[test]
    fn a_world_is_reduced_to_the_steps_that_matter() {
        let fails = |scenario: &Scenario| {
            let deletes = scenario.steps.iter().any(|(_, step)| matches!(step, Step::Delete(_)));
            let submits = scenario.steps.iter().filter(|(_, step)| matches!(step, Step::Submit(_))).count();
            deletes && submits >= 2
        };
        let world = (0..).map(generate).find(|world| fails(world)).expect("most worlds delete a stack");
        let minimised = minimise(&world, fails, || true);
        let steps: Vec<String> = minimised.scenario.steps.iter().map(|(_, step)| format!("{step:?}")).collect();
        assert_eq!(steps.len(), 3, "{steps:?}");
        assert_eq!(minimised.scenario.fleet.agents.len(), 1);
    }

    #[test]
    fn nothing_is_tried_when_no_time_is_left() {
        let world = generate(1);
        assert_eq!(minimise(&world, |_| true, || false).runs, 0);
    }
}
