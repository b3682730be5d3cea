//! `sindri agent`.

use crate::support::{Broker, parse_cells};

#[test]
fn an_agent_with_the_name_of_a_deleted_one_has_a_new_id() {
    let broker = Broker::start();
    broker.run_successfully(&["agent", "create", "east", "--cluster", "prod"]);
    let before = broker.run_successfully(&["agent", "list"]);
    let output = broker.run_successfully(&["agent", "delete", "east"]);
    assert_eq!(output.trim(), "agent east of cluster prod is deleted; the objects in its cluster stay");
    assert_eq!(parse_cells(&broker.run_successfully(&["agent", "list"])).len(), 0);
    assert!(!broker.run(&["agent", "delete", "east"]).status.success(), "the agent was deleted already");
    broker.run_successfully(&["agent", "create", "east", "--cluster", "prod"]);
    let after = broker.run_successfully(&["agent", "list"]);
    let (before, after) = (&parse_cells(&before)[0], &parse_cells(&after)[0]);
    assert_eq!(after[..2], before[..2]);
    assert_ne!(after.last(), before.last(), "the new agent has the id of the deleted one");
}
