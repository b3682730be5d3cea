//! The broker on a real socket with the real client.

use http::StatusCode;
use hyper_util::client::legacy::connect::HttpConnector;
use sindri_broker::{Broker, SqliteStore, serve};
use sindri_client::{Client, TargetStateResponse};
use sindri_model::wire::{
    AgentStatus, ApprovalRequest, ApprovalState, ConditionStatus, CreateAgentRequest, DeploymentObject,
    EVENT_TYPE_DEPLOY, EventStatus, HeartbeatReport, NewAgentEvent, NewGenerator, NewStack, ReportedCondition,
    StackState, StackStatusReport, UpdateAgentRequest, condition,
};
use sindri_model::{AgentId, Epoch, Pak};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::support::{BUNDLE, counting_entropy, fixed_clock};

#[tokio::test]
async fn the_client_and_the_broker_agree_on_every_operation() {
    let pak = Pak::generate(&counting_entropy());
    let broker =
        Broker::start(SqliteStore::open(":memory:", None).unwrap(), fixed_clock(), counting_entropy()).await.unwrap();
    assert!(broker.create_admin_key(&pak).await.unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = serve(listener, broker, async move { stopped.await.unwrap() });
    let asking = async {
        call_every_operation(&base, &pak).await;
        stop.send(()).unwrap();
    };
    let (server, ()) = tokio::join!(serving, asking);
    server.unwrap();
}

fn client(base: &str, key: &str) -> Client {
    Client::new(HttpConnector::new(), base.parse().unwrap(), key).unwrap()
}

async fn call_every_operation(base: &str, pak: &Pak) {
    let admin = client(base, &pak.reveal());
    assert!(admin.whoami().await.unwrap().admin);
    let wrong = client(base, "brokkr_BRabcdef_nothing").whoami().await.unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "cannot read the owner of the key: the broker does not accept the key: the key is unknown"
    );
    assert!(!wrong.is_transient());

    let generator = NewGenerator { name: "default".to_owned(), description: None, key_expires_at: None };
    let generator = admin.create_generator(&generator).await.unwrap().generator;
    assert_eq!(admin.list_generators().await.unwrap(), std::slice::from_ref(&generator));
    let request = CreateAgentRequest {
        name: "a b".to_owned(),
        cluster_name: "c&d".to_owned(),
        generator_ids: None,
        key_expires_at: None,
    };
    let created = admin.create_agent(&request).await.unwrap();
    let (agent, id) = (client(base, &created.initial_pak), created.agent.id);
    assert_eq!(agent.whoami().await.unwrap().agent, Some(id));
    assert_eq!(agent.find_agent("a b", "c&d").await.unwrap(), created.agent);
    assert!(admin.find_agent("a", "c").await.unwrap_err().is_not_found());
    let active = UpdateAgentRequest { status: Some(AgentStatus::Active), ..UpdateAgentRequest::default() };
    assert_eq!(admin.update_agent(id, &active).await.unwrap().status, AgentStatus::Active);
    agent.send_heartbeat(id, &HeartbeatReport::default()).await.unwrap();
    assert!(agent.get_agent(id).await.unwrap().last_heartbeat.is_some());
    assert_eq!(admin.list_agents().await.unwrap().len(), 1);

    let stack = NewStack { name: "web".to_owned(), description: None, generator_id: generator.id };
    let stack = admin.create_stack(&stack).await.unwrap();
    assert_eq!(admin.list_stacks().await.unwrap(), [admin.get_stack(stack.id).await.unwrap()]);
    let revision = admin.submit_revision(stack.id, BUNDLE).await.unwrap();
    assert_eq!(revision.yaml_content, BUNDLE);
    let newest = admin.get_newest_revision(stack.id).await.unwrap().unwrap();
    let stored = admin.get_revision(revision.id).await.unwrap();
    assert_eq!(newest, DeploymentObject { yaml_content: String::new(), ..stored });
    admin.register_agent(generator.id, id).await.unwrap();
    let target = admin.add_target(id, stack.id).await.unwrap();
    assert_eq!(agent.list_targets(id).await.unwrap(), [target]);

    let TargetStateResponse::Changed { objects, etag, epoch, status, .. } =
        agent.get_target_state(id, None).await.unwrap()
    else {
        panic!("unchanged without a tag");
    };
    let named = DeploymentObject { stack_name: Some("web".to_owned()), ..revision.clone() };
    assert_eq!((&objects[..], epoch), (&[named][..], Epoch(1)));
    assert_eq!(status, Some(AgentStatus::Active));
    assert_eq!(agent.get_target_state(id, etag.as_deref()).await.unwrap(), TargetStateResponse::Unchanged { status });
    assert_eq!(agent.send_heartbeat(id, &HeartbeatReport::default()).await.unwrap(), status);
    report_and_decide(&admin, &agent, id, &revision).await;
    let event = NewAgentEvent {
        agent_id: id,
        deployment_object_id: revision.id,
        event_type: EVENT_TYPE_DEPLOY.to_owned(),
        status: EventStatus::Success,
        message: None,
    };
    let first = agent.report_outcome(&event, "key").await.unwrap();
    assert_eq!(agent.report_outcome(&event, "key").await.unwrap(), first);
    assert_eq!(agent.list_outcomes(id).await.unwrap(), std::slice::from_ref(&first));
    assert_eq!(agent.list_events(id).await.unwrap(), [first]);
    admin.remove_target(id, stack.id).await.unwrap();
    admin.delete_stack(stack.id).await.unwrap();
    assert!(admin.get_stack(stack.id).await.unwrap_err().is_not_found());
    let TargetStateResponse::Changed { objects, .. } = agent.get_target_state(id, etag.as_deref()).await.unwrap()
    else {
        panic!("a removal was not received");
    };
    assert!(objects.len() == 1 && objects[0].is_deletion_marker);
}

/// Reports a status and requests an approval as the agent, and decides as the administrator.
async fn report_and_decide(admin: &Client, agent: &Client, id: AgentId, revision: &DeploymentObject) {
    let conditions = vec![ReportedCondition {
        kind: condition::APPLIED.to_owned(),
        status: ConditionStatus::True,
        reason: String::new(),
        message: String::new(),
    }];
    let report = StackStatusReport { deployment_object_id: revision.id, conditions };
    agent.report_stack_status(id, revision.stack_id, &report).await.unwrap();
    assert_eq!(admin.get_stack_status(revision.stack_id).await.unwrap().state, StackState::Applied);
    let request = ApprovalRequest {
        deployment_object_id: revision.id,
        digest: "a".repeat(64),
        reasons: Vec::new(),
        plan: String::new(),
    };
    let asked = agent.request_approval(id, revision.stack_id, &request).await.unwrap();
    assert_eq!(admin.list_approvals(Some(ApprovalState::Pending)).await.unwrap(), std::slice::from_ref(&asked));
    assert_eq!(admin.approve(asked.id).await.unwrap().state, ApprovalState::Approved);
    assert_eq!(admin.reject(asked.id).await.unwrap_err().status(), Some(StatusCode::CONFLICT));
    assert_eq!(admin.list_approvals(None).await.unwrap().len(), 1);
    assert_eq!(
        (agent.list_policies(id).await.unwrap().policies, agent.list_outcomes(id).await.unwrap()),
        (vec![], vec![])
    );
}
