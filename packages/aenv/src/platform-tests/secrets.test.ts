import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callFunction, callTool, urlOf } from "./calls.ts";
import { type ChildPlatform, startChild } from "./child.ts";
import { type Answer, projects, publish } from "./platform.ts";

/** One unique text per kind of secret. */
const VARIABLE = "zq-variable-7f3a";
const ARGUMENT = "zq-argument-91bc";
const TOOL_INPUT = "zq-tool-input-55de";
const WRONG_TOKEN = "aenv_0123456789ab_zqWrongTokenzqWrongToken123";

describe.each(["instance", "shared"] as const)("a secret given to an environment with isolation '%s'", (isolation) => {
  let child: ChildPlatform;
  let secrets: string[];
  /** Responses that must not contain any of them. */
  const answers: { readonly what: string; readonly text: string }[] = [];

  const note = (what: string, answer: Answer | Response, text: unknown) => {
    answers.push({ what, text: `${JSON.stringify(text)} ${JSON.stringify([...answer.headers])}` });
  };

  beforeAll(async () => {
    child = await startChild({ access: "on", logLevel: "trace" });
    const admin = { authorization: `Bearer ${child.token}` };
    const made = (await child.demand("POST", "/token", { owner: "ada", roles: ["publisher", "trainer"] }, admin)) as {
      id: string;
      token: string;
    };
    const ada = { authorization: `Bearer ${made.token}` };
    const ref = await publish(child, projects.probe, { isolation, headers: ada });
    const ask = async (method: string, path: string, body?: unknown, headers: Record<string, string> = ada) => {
      const answer = await child.ask(method, path, body, headers);
      note(`${method} ${path}`, answer, [answer.message, path.endsWith("/token") ? null : withoutLinks(answer.data)]);
      return answer;
    };

    const request = { envName: ref, environment_variables: { API_KEY: VARIABLE }, arguments: [`--key=${ARGUMENT}`] };
    const { data: instance } = await ask("POST", "/env-instance", request);
    await ask("POST", "/env-instance/batch", { ...request, count: 2 });
    await ask("POST", "/env-instance", { ...request, environment_variables: { API_KEY: VARIABLE, SETUP: "fail" } });
    await ask("POST", "/env-instance", { ...request, envName: "nowhere" });
    await ask("POST", "/env-instance", { ...request, ttl: "soon" });
    await ask("POST", "/env-instance", { ...request, environment_variables: { API_KEY: [VARIABLE] } });
    await ask("POST", "/env-instance", { ...request, environment_variables: VARIABLE });
    for (const path of ["", "/events", "/logs"]) await ask("GET", `/env-instance/${instance.id}${path}`);
    await ask("POST", `/env-instance/${instance.id}/fork`, { count: 1 });
    await ask("POST", `/env-instance/${instance.id}/renew`, { ttl: "1h" });
    await ask("POST", `/env-instance/${instance.id}/reset`, {});
    for (const path of ["/env-instance/list", "/env-instance/*/list", "/env", `/env/${ref.replace("@", "/")}`, "/whoami", "/openapi.json"])
      await ask("GET", path);
    for (const path of ["/token", "/metrics", "/config"]) await ask("GET", path, undefined, admin);
    await ask("GET", "/env", undefined, { authorization: `Bearer ${WRONG_TOKEN}` });
    await ask("GET", "/env", undefined, { authorization: `Basic ${WRONG_TOKEN}` });
    const broken = await fetch(`${child.controlUrl}/env-instance`, {
      method: "POST",
      headers: { ...ada, "content-type": "application/json" },
      body: `{"environment_variables":{"API_KEY":"${VARIABLE}"},,}`,
    });
    note("a body that is no JSON", broken, await broken.json());

    const link = String(instance.agent_url);
    await callTool(link, "size", { text: TOOL_INPUT });
    await callTool(urlOf(child, instance.id), "nothing-like-it", { text: TOOL_INPUT });
    await callFunction(child, instance.id, "print", { line: "printed" });
    for (const [url, headers] of [
      [link.replace("/mcp", "/task/reward"), {}],
      [urlOf(child, instance.id, "/task/reward"), { authorization: `Bearer ${WRONG_TOKEN}` }],
      [urlOf(child, "probe-nobody"), ada],
    ] as const) {
      const answer = await fetch(url, { method: "POST", headers, body: TOOL_INPUT });
      note(url, answer, await answer.text());
    }
    const metrics = await fetch(`${child.controlUrl}/metrics`, { headers: admin });
    note("metrics", metrics, await metrics.text());
    const [key = ""] = /[a-z2-7]{20}(?=\/mcp)/.exec(link) ?? [];
    secrets = [VARIABLE, ARGUMENT, TOOL_INPUT, WRONG_TOKEN, secretOf(child.token), secretOf(made.token), key];
    // The environment itself prints the secret, and its log is visible only to its owner.
    expect(await child.ask("DELETE", `/env-instance/${instance.id}`, undefined, ada)).toMatchObject({ success: true });
  });
  afterAll(() => child?.close());

  it("is available to the environment", () => {
    expect(secrets.every((secret) => secret.length > 10)).toBe(true);
    expect(answers.length).toBeGreaterThan(25);
  });

  it("is in no line of the log", () => {
    const log = child.log();
    expect(log.split("\n").length).toBeGreaterThan(20);
    for (const secret of secrets) expect(log.split("\n").filter((line) => line.includes(secret))).toEqual([]);
    for (const line of log.split("\n")) if (line !== "") expect(() => JSON.parse(line)).not.toThrow();
  });

  it("is in no error, and in no unrelated response", () => {
    for (const secret of secrets) expect(answers.filter(({ text }) => text.includes(secret)).map(({ what }) => what)).toEqual([]);
  });

  it("is in no file of the server", () => {
    const files = readdirSync(child.home, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    expect(files.map(({ name }) => name)).toContain("server.db");
    // Agent keys are looked up in the store, so it contains them.
    const hidden = secrets.slice(0, -1);
    for (const { parentPath, name } of files) {
      const text = readFileSync(join(parentPath, name), "latin1");
      for (const secret of hidden) expect([name, text.includes(secret)]).toEqual([name, false]);
    }
  });
});

/** Only responses to the owner contain the agent link. */
function withoutLinks(data: unknown): unknown {
  return JSON.parse(JSON.stringify(data ?? null, (key, value) => (key === "agent_url" || key === "a2a_url" ? undefined : value)));
}

function secretOf(token: string): string {
  return token.split("_").slice(2).join("_");
}
