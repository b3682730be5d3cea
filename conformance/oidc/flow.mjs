// `sindri login` with a real OpenID Connect provider, against a running broker. The arguments are the binaries of both.
//
// The provider runs in this process, so that the consent of a person can be given without a browser. Its ID tokens end after some
// seconds, so that each command has to exchange the refresh token.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Provider } from "oidc-provider";

const [brokerProgram, sindriProgram] = process.argv.slice(2);
const CLIENT = "sindri";
const ROLES = { anna: ["sindri-admin"], bob: ["sindri-reader"], carl: ["other"] };
const directory = mkdtempSync(join(tmpdir(), "sindri-login-"));

function newKey(id) {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { ...privateKey.export({ format: "jwk" }), kid: id, use: "sig", alg: "RS256" };
}

async function startProvider() {
  const server = createServer();
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const grants = ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"];
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT,
        application_type: "native",
        token_endpoint_auth_method: "none",
        grant_types: grants,
        redirect_uris: [],
        response_types: [],
      },
    ],
    features: { deviceFlow: { enabled: true }, devInteractions: { enabled: false } },
    jwks: { keys: [newKey("one"), newKey("two")] },
    cookies: { keys: ["only for this test"] },
    claims: { openid: ["sub", "roles"] },
    conformIdTokenClaims: false,
    issueRefreshToken: async () => true,
    rotateRefreshToken: true,
    ttl: { IdToken: 10, AccessToken: 10, DeviceCode: 120, Grant: 600, RefreshToken: 600 },
    findAccount: async (_context, accountId) => ({
      accountId,
      claims: async () => ({ sub: accountId, roles: ROLES[accountId] }),
    }),
  });
  server.on("request", provider.callback());
  return { provider, server, issuer };
}

// Gives the consent that a person would give in a browser.
async function approve(provider, userCode, accountId) {
  const code = await provider.DeviceCode.findByUserCode(userCode.replaceAll("-", ""));
  assert.ok(code, `the provider does not know the code ${userCode}`);
  const grant = new provider.Grant({ accountId, clientId: CLIENT });
  grant.addOIDCScope("openid offline_access");
  Object.assign(code, {
    accountId,
    grantId: await grant.save(),
    scope: "openid offline_access",
    authTime: Math.floor(Date.now() / 1000),
    claims: {},
  });
  await code.save(120);
}

async function startBroker(issuer) {
  const database = `sqlite:${join(directory, "sindri.db")}`;
  const process = spawn(brokerProgram, [
    ...["--listen", "127.0.0.1:0", "--log", "off", "--database-url", database, "--admin-key-file", join(directory, "key")],
    ...["--oidc-issuer", issuer, "--oidc-audience", CLIENT],
  ]);
  for await (const line of createInterface({ input: process.stdout })) {
    if (line.startsWith("READY ")) return { process, url: line.slice("READY ".length) };
  }
  throw new Error("the broker does not start");
}

function environment(broker, person) {
  return { SINDRI_BROKER: broker.url, SINDRI_TOKEN_FILE: join(directory, `${person}.json`) };
}

function sindri(broker, person, ...parameters) {
  return new Promise((done) => {
    execFile(sindriProgram, parameters, { env: environment(broker, person) }, (error, stdout, stderr) => {
      done({ code: error ? error.code : 0, stdout, stderr });
    });
  });
}

async function logIn(provider, issuer, broker, person) {
  const parameters = ["login", "--issuer", issuer, "--client-id", CLIENT];
  const process = spawn(sindriProgram, parameters, { env: environment(broker, person) });
  const ended = new Promise((end) => process.on("close", end));
  let shown = "";
  process.stderr.on("data", (data) => (shown += data));
  for await (const line of createInterface({ input: process.stdout })) {
    shown += `${line}\n`;
    const code = /the code (\S+)/.exec(line);
    if (code) await approve(provider, code[1], person);
  }
  assert.equal(await ended, 0, shown);
}

async function get(broker, path, credential) {
  const response = await fetch(`${broker.url}/api/v1${path}`, { headers: { authorization: `Bearer ${credential}` } });
  return { status: response.status, body: await response.json() };
}

const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

async function run() {
  const { provider, server, issuer } = await startProvider();
  const broker = await startBroker(issuer);
  try {
    const without = await sindri(broker, "anna", "agent", "list");
    assert.equal(without.code, 2, without.stderr);
    assert.match(without.stderr, /sindri login/);

    await logIn(provider, issuer, broker, "anna");
    const file = join(directory, "anna.json");
    assert.equal(statSync(file).mode & 0o777, 0o600);
    const first = JSON.parse(readFileSync(file));

    const created = await sindri(broker, "anna", "agent", "create", "east", "--cluster", "demo");
    assert.equal(created.code, 0, created.stderr);
    const second = JSON.parse(readFileSync(file));
    assert.notEqual(second.refresh_token, first.refresh_token, "the refresh token was not exchanged");
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.equal((await sindri(broker, "anna", "agent", "list")).code, 0);

    const key = readFileSync(join(directory, "key"), "utf8").trim();
    const { body: audit } = await get(broker, "/admin/audit-logs?action=agent.created", key);
    assert.equal(audit.logs[0].actor_name, "oidc:anna");

    await logIn(provider, issuer, broker, "bob");
    assert.equal((await sindri(broker, "bob", "agent", "list")).code, 0);
    const refused = await sindri(broker, "bob", "agent", "create", "west", "--cluster", "demo");
    assert.equal(refused.code, 2, "a reader created an agent");
    assert.match(refused.stderr, /403/);

    await logIn(provider, issuer, broker, "carl");
    const noRole = await sindri(broker, "carl", "agent", "list");
    assert.match(noRole.stderr, /give no role/);

    const { id_token: token } = JSON.parse(readFileSync(file));
    assert.equal((await get(broker, "/agents", token)).status, 200);
    const [header, claims, signature] = token.split(".");
    const raised = { ...JSON.parse(Buffer.from(claims, "base64url")), sub: "root" };
    const forged = [
      [header, encode(raised), signature],
      [encode({ alg: "none" }), claims, ""],
      [encode({ alg: "HS256", kid: "one" }), claims, signature],
      [header, claims, ""],
    ];
    for (const parts of forged) {
      const { status, body } = await get(broker, "/agents", parts.join("."));
      assert.deepEqual([status, body.code], [401, "invalid_token"], parts.join("."));
    }

    // A person whose record is deleted cannot log in any more.
    const { body: admins } = await get(broker, "/admins", key);
    const bob = admins.find((admin) => admin.name === "oidc:bob");
    const deleted = await fetch(`${broker.url}/api/v1/admins/${bob.id}`, {
      method: "DELETE",
      headers: { authorization: `Bearer ${key}` },
    });
    assert.equal(deleted.status, 204);
    assert.match((await sindri(broker, "bob", "agent", "list")).stderr, /was deleted/);

    rmSync(file);
    writeFileSync(file, "{}", { mode: 0o644 });
    assert.match((await sindri(broker, "anna", "agent", "list")).stderr, /other users may read/);
    assert.equal((await sindri(broker, "anna", "logout")).code, 0);
    assert.throws(() => statSync(file));
  } finally {
    broker.process.kill();
    server.closeAllConnections();
    server.close();
  }
}

try {
  await run();
} finally {
  rmSync(directory, { recursive: true, force: true });
}
