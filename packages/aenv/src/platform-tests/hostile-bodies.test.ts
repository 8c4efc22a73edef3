import { once } from "node:events";
import { fillPath, instanceRoutes, type Route } from "@aenv/contract";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { callTool, urlOf } from "./calls.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";
import { fill, routesOf } from "./routes.ts";

const LEVELS = 100_000;
const deepList = "[".repeat(LEVELS) + "]".repeat(LEVELS);
const deepObject = `${'{"a":'.repeat(LEVELS)}1${"}".repeat(LEVELS)}`;
const graph = (data: string) => JSON.stringify({ snapshot: { environment: "probe@1.0.0", format: "graph", data } });

/** Fields that routes read, each with the value. */
function inFields(value: string): string {
  const names =
    "snapshot state task data arguments environment_variables variables message action params requests rollouts ids labels metadata";
  return `{${names
    .split(" ")
    .map((name) => `"${name}":${value}`)
    .join(",")}}`;
}

interface HostileBody {
  readonly text: string;
  /** A part of the error on routes that read the body as an object. */
  readonly says?: RegExp;
}

const bodies: Readonly<Record<string, HostileBody>> = {
  "no JSON": { text: "{", says: /not valid JSON|Invalid request format|Parse error/ },
  "a NUL": { text: "\u0000", says: /not valid JSON|Invalid request format|Parse error/ },
  "a number": { text: "1e999" },
  "a deep list": { text: deepList, says: /nested deeper than 200 levels/ },
  "a deep object": { text: deepObject, says: /nested deeper than 200 levels/ },
  "fields with deep values": { text: inFields(deepList), says: /nested deeper than 200 levels/ },
  "a deep call of a tool": {
    text: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","arguments":{"a":${deepList}}}}`,
    says: /nested deeper than 200 levels/,
  },
  "three million values": { text: `{"snapshot":[${"0,".repeat(3_000_000)}0]}`, says: /more than 2000000 values/ },
  "a list with wrong values": { text: inFields(`[${'{"x":1},'.repeat(20_000)}0]`) },
  // Before: an error of 8 MB for a hundred thousand.
  "twenty thousand unknown fields": {
    text: `{${Array.from({ length: 20_000 }, (_, at) => `"enviroment${at}":${at}`).join(",")}}`,
  },
  "a prototype": { text: '{"__proto__":{"x":1},"constructor":{"prototype":{"y":1}}}' },
  "half of a surrogate pair": { text: '{"snapshot":"\\ud800","message":"\\udfff","name":"\\ud800"}' },
  "a snapshot that is none": { text: '{"snapshot":{"a":1}}' },
  "a snapshot of something else": { text: '{"snapshot":{"environment":"other@1.0.0","format":"graph","data":"[1]"}}' },
  "a snapshot without data": { text: '{"snapshot":{"environment":"probe@1.0.0","format":"graph"}}' },
  "a snapshot with half of its data": { text: graph("[") },
  "a snapshot with a wrong reference": { text: graph('[{"count":99}]') },
  "a snapshot with deep references": {
    text: graph(JSON.stringify(Array.from({ length: LEVELS }, (_, at) => (at === LEVELS - 1 ? 1 : [at + 1])))),
  },
  "a snapshot with an unknown type": { text: graph('[["Surprise",1],1]') },
};

/** The codes of errors that say that the client has to change its request. */
const CLIENTS =
  /"code":"(?:request\.(?:invalid|too_large)|snapshot\.invalid|environment\.invalid)"|"code":-32[67]00|"status":"INVALID_ARGUMENT"/;
/** What is said of any body, because the route reads none, or because of another thing that the request names. */
const OTHER = /not_found|exists|released|in_use|unsupported|access\./;

/** A stall would show in the requests of others: each of these has a millisecond of work. The limit is for a busy machine. */
const STALL_MS = 10_000;

async function send(url: string, method: string, body: string) {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const response = await fetch(url, { method, headers, body, signal: AbortSignal.timeout(STALL_MS) });
  return { status: response.status, text: await response.text() };
}

describe("a hostile body", () => {
  let platform: Platform;
  let ref: string;
  let id: string;
  let pid: unknown;

  beforeAll(async () => {
    platform = await startPlatform();
    ref = await publish(platform, projects.probe);
    ({ id } = await platform.create(ref));
    pid = await pidOf(id);
  }, 60_000);
  afterAll(() => platform?.close());

  async function pidOf(instance: string): Promise<unknown> {
    return JSON.parse((await send(urlOf(platform, instance, "/functions/pid"), "POST", "{}")).text).data;
  }

  const ofInstances = Object.entries<Route>(instanceRoutes).filter(([, { method }]) => method === "POST" || method === "*");

  // Before: 500 for functions and rewards, and 100,000 levels were accepted as the arguments of a tool.
  describe.each(Object.entries(bodies))("with %s", (_, { text, says }) => {
    it.each(ofInstances)("is refused by the data port at the route %s, and its sandbox lives on", async (name, route) => {
      const wildcard = name === "a2aHttp" ? "/message:send" : "/functions/waits";
      const path = fillPath(route, { name: "print", role: "white" }).replace("/*", wildcard);
      const answer = await send(urlOf(platform, id, path), "POST", text);
      // In the original's protocol, wrong arguments of a function or a reward are a 500. Each of them gets an object here.
      const isObjectOfArguments = says === undefined && /functions|reward/.test(path) && text.startsWith("{");
      // These read no body.
      const readsNone = name === "snapshot" || name === "stepReward";
      // The environment has no roles, which routes of a role may say before they read the body.
      const refused = /^\/role\//.test(path) ? [400, 404, 413] : name === "a2a" ? [200] : [400, 413, 501];
      if (!isObjectOfArguments && !readsNone) expect([answer.status, answer.text]).toEqual([expect.toBeOneOf(refused), expect.anything()]);
      // JSON-RPC over A2A has its errors in an answer of status 200.
      const saysWhy = answer.status === 400 || name === "a2a";
      if (saysWhy) expect(answer.text).toMatch(CLIENTS);
      if (saysWhy && says !== undefined) expect(answer.text).toMatch(says);
      expect(answer.text.length).toBeLessThan(20_000);
    });

    it("is refused by every route of the control port that reads it, with a short error of the client", { timeout: 120_000 }, async () => {
      for (const { method, path } of await routesOf(platform)) {
        if (method === "GET" || (method === "DELETE" && path === "/env-instance/{id}")) continue;
        const target = fill(path, { id, name: "probe", version: "1.0.0", ref });
        const answer = await send(`${platform.controlUrl}${target}`, method, text);
        const shown = [`${method} ${path}`, answer.status, answer.text.slice(0, 1_000)];
        expect(shown).toEqual([shown[0], expect.toSatisfy((status: number) => status < 500 || status === 501), shown[2]]);
        if (answer.status === 400 && !OTHER.test(answer.text)) expect(answer.text).toMatch(CLIENTS);
        expect([shown[0], answer.text.length < 20_000]).toEqual([shown[0], true]);
      }
    });
  });

  it.each(Object.entries(bodies))("with %s does not break the WebSocket of OpenEnv", async (_, { text }) => {
    const socket = new WebSocket(`${platform.dataUrl.replace("http", "ws")}/openenv/${encodeURIComponent(ref)}/ws`);
    await once(socket, "open");
    const answered = Promise.race([once(socket, "message"), once(socket, "close")]);
    socket.send(text);
    const [first] = await answered;
    if (Buffer.isBuffer(first)) expect(JSON.parse(String(first)).type).toBe("error");
    socket.terminate();
  });

  it("leaves the process of its instance as it was", async () => {
    expect(await pidOf(id)).toBe(pid);
    expect((await callTool(urlOf(platform, id), "count")).status).toBe(200);
  });

  // Before: 500 for a state that the client has sent.
  it.each(["a snapshot that is none", "a snapshot with half of its data", "a snapshot with deep references"])(
    "of a new instance with %s says that the snapshot is wrong",
    async (name) => {
      const { snapshot } = JSON.parse(bodies[name]?.text ?? "");
      const answer = await platform.ask("POST", "/env-instance", { envName: ref, snapshot });
      expect(answer).toMatchObject({ status: 400, error: { code: "snapshot.invalid" }, message: expect.stringContaining("snapshot") });
    },
  );
});
