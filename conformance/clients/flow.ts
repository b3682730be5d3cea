// A flow through the broker's API with the client that openapi-typescript generates: from an agent to a deleted stack.

import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const [baseUrl, key] = process.argv.slice(2);
assert(baseUrl && key, "usage: flow URL KEY");
const api = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });

// Returns the body of a response, or fails with the error of the broker.
function expectBody<T>({ data, error, response }: { data?: T; error?: unknown; response: Response }): T {
  assert(data !== undefined, `${response.status} ${JSON.stringify(error)}`);
  return data;
}

const generator = expectBody(await api.POST("/api/v1/generators", { body: { name: "typescript" } })).generator;
const created = expectBody(
  await api.POST("/api/v1/agents", {
    body: { name: "typescript", cluster_name: "demo", generator_ids: [generator.id] },
  }),
);
const agent = created.agent.id;
assert.equal(created.agent.status, "INACTIVE");
assert.equal(created.agent.last_heartbeat, null);
const active = await api.PUT("/api/v1/agents/{id}", { params: { path: { id: agent } }, body: { status: "ACTIVE" } });
assert.equal(expectBody(active).status, "ACTIVE");

const stack = expectBody(
  await api.POST("/api/v1/stacks", { body: { name: "typescript", generator_id: generator.id } }),
).id;
const yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n";
const revision = expectBody(
  await api.POST("/api/v1/stacks/{id}/deployment-objects", {
    params: { path: { id: stack } },
    body: { yaml_content: yaml, is_deletion_marker: false },
  }),
);
assert.equal(revision.yaml_content, yaml);
const target = await api.POST("/api/v1/agents/{id}/targets", {
  params: { path: { id: agent } },
  body: { agent_id: agent, stack_id: stack },
});
expectBody(target);

const state = await api.GET("/api/v1/agents/{id}/target-state", { params: { path: { id: agent } } });
assert.deepEqual(expectBody(state).map((object) => object.id), [revision.id]);
const stacks = expectBody(await api.GET("/api/v1/stacks", { params: { query: { limit: 100 } } }));
assert(stacks.some((listed) => listed.id === stack));

// An error has a code in its type.
const twice = await api.POST("/api/v1/stacks", { body: { name: "typescript", generator_id: generator.id } });
assert.equal(twice.error?.code, "unique_violation");

for (const _ of [1, 2]) {
  const deleted = await api.DELETE("/api/v1/agents/{id}", { params: { path: { id: agent } } });
  assert.equal(deleted.response.status, 204);
}
const deleted = await api.DELETE("/api/v1/stacks/{id}", { params: { path: { id: stack } } });
assert.equal(deleted.response.status, 204);
const gone = await api.GET("/api/v1/stacks/{id}", { params: { path: { id: stack } } });
assert.equal(gone.error?.code, "stack_not_found");
