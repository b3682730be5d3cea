//! Several brokers on one store: one has something in memory that another has changed.

use crate::support::Api;

#[tokio::test]
async fn an_agent_that_got_a_newer_target_state_from_another_broker_does_not_go_back() {
    let [first, second] = Api::two_on_one_store().await;
    let generator = first.create_generator("shop").await;
    let agent = first.create_agent("east", &[&generator.0]).await;
    let stack = first.create_stack("web", &generator.0).await;
    first.target(&agent.0, &stack).await;
    first.submit(&stack, false).await;
    let applied = first.poll(&agent).await;
    assert_eq!(applied[0]["is_deletion_marker"], false, "{applied:?}");
    second.delete(&format!("/stacks/{stack}")).await.expect_status(204);
    let removal = second.poll(&agent).await;
    assert_eq!(removal[0]["is_deletion_marker"], true, "{removal:?}");
    assert_eq!(first.poll(&agent).await, removal, "the first broker has not heard of the removal yet");
}
