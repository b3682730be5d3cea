//! Reads the output of random worlds.

/// The first world in which a property did not hold.
#[derive(Debug, PartialEq, Eq)]
pub struct FailingWorld {
    pub seed: u64,
    pub oracle: String,
    /// Lines of the scenario to which it was reduced.
    pub story_lines: usize,
}

/// Finds the first failing world in the output of the simulation.
pub fn find_failing_world(output: &str) -> Option<FailingWorld> {
    let mut lines = output.lines().skip_while(|line| !is_failure(line));
    let (seed, rest) = lines.next()?.strip_prefix("world ")?.split_once(": ")?;
    let (oracle, _) = rest.split_once(": ")?;
    let story = lines.skip_while(|line| *line != "reduced to:").take_while(|line| !line.starts_with("replay: "));
    let story_lines = story.filter(|line| line.starts_with("  ")).count();
    Some(FailingWorld { seed: seed.parse().ok()?, oracle: oracle.to_owned(), story_lines })
}

fn is_failure(line: &str) -> bool {
    let seed = line.strip_prefix("world ").and_then(|rest| rest.split_once(": ")).map(|(seed, _)| seed);
    seed.is_some_and(|seed| seed.parse::<u64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failing_world_is_found_with_the_length_of_its_story() {
        let output = "\nworld 17: no-leak: ConfigMap a is left\nreduced to:\n\n  title: a\n  steps:\n    - stall\n\nreplay: cargo\n\n";
        let found = FailingWorld { seed: 17, oracle: "no-leak".to_owned(), story_lines: 3 };
        assert_eq!(find_failing_world(output), Some(found));
        assert_eq!(find_failing_world("  10.0 s   100 worlds\n"), None);
    }
}
