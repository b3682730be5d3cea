"""A flow through the broker's API with the client that openapi-python-client generates: from an agent to a deleted stack."""

import sys

from sindri_broker_client import AuthenticatedClient
from sindri_broker_client.api.agents import add_target, create_agent, delete_agent, read_target_state, update_agent
from sindri_broker_client.api.generators import create_generator
from sindri_broker_client.api.stacks import create_stack, delete_stack, list_stacks, read_stack
from sindri_broker_client.api.stacks import submit_deployment_object
from sindri_broker_client.models import (
    AgentStatus,
    CreateAgentRequest,
    CreateDeploymentObjectRequest,
    NewAgentTarget,
    NewGenerator,
    NewStack,
    Problem,
    UpdateAgentRequest,
)

YAML = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"


def expect(result):
    """Returns a result, or fails with the error of the broker."""
    assert result is not None and not isinstance(result, Problem), result
    return result


def main(url: str, key: str) -> None:
    api = AuthenticatedClient(base_url=url, token=key, raise_on_unexpected_status=True)
    generator = expect(create_generator.sync(client=api, body=NewGenerator(name="python"))).generator
    request = CreateAgentRequest(name="python", cluster_name="demo", generator_ids=[generator.id])
    created = expect(create_agent.sync(client=api, body=request)).agent
    assert (created.status, created.last_heartbeat) == (AgentStatus.INACTIVE, None)
    changes = UpdateAgentRequest(status=AgentStatus.ACTIVE)
    assert expect(update_agent.sync(created.id, client=api, body=changes)).status == AgentStatus.ACTIVE

    stack = expect(create_stack.sync(client=api, body=NewStack(name="python", generator_id=generator.id)))
    body = CreateDeploymentObjectRequest(yaml_content=YAML)
    revision = expect(submit_deployment_object.sync(stack.id, client=api, body=body))
    assert revision.yaml_content == YAML
    expect(add_target.sync(created.id, client=api, body=NewAgentTarget(agent_id=created.id, stack_id=stack.id)))
    state = expect(read_target_state.sync(created.id, client=api))
    assert [entry.id for entry in state] == [revision.id]
    assert stack.id in [listed.id for listed in expect(list_stacks.sync(client=api, limit=100))]

    twice = create_stack.sync(client=api, body=NewStack(name="python", generator_id=generator.id))
    assert isinstance(twice, Problem) and twice.code == "unique_violation", twice
    for _ in range(2):
        assert delete_agent.sync_detailed(created.id, client=api).status_code == 204
    assert delete_stack.sync_detailed(stack.id, client=api).status_code == 204
    gone = read_stack.sync(stack.id, client=api)
    assert isinstance(gone, Problem) and gone.code == "stack_not_found", gone


main(*sys.argv[1:])
