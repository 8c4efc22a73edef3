import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { defineEnvironment, type EnvironmentDefinition } from "../definition/definition.ts";
import { type Served, serve } from "../serve/serve.ts";
import { conformanceAgent } from "./testing/conformance-agent.ts";

let served: Served;
let gates: (() => void)[] = [];

const shop = defineEnvironment({
  setup: () => ({ total: 0 }),
  tools: [
    {
      name: "add",
      description: "Adds.",
      input: z.object({ n: z.number() }),
      run: ({ n }, { state }) => {
        state.total += n;
        return { total: state.total };
      },
    },
    {
      name: "slow",
      run: async (_, { progress, signal }) => {
        progress(1, 2, "half");
        await new Promise<void>((resolve, reject) => {
          gates.push(resolve);
          signal.addEventListener("abort", () => reject(signal.reason));
        });
        return "done";
      },
    },
    { name: "picture", run: () => Buffer.from("89504e470d0a1a0a00", "hex") },
    { name: "fail", run: () => Promise.reject(new Error("sold out")) },
  ],
  rewards: [{ name: "total", score: ({ state }) => state.total }],
});

async function start(environment: EnvironmentDefinition<never> | object): Promise<void> {
  served = await serve(environment as EnvironmentDefinition, { name: "shop", version: "1.2.0", port: 0, graceMs: 100, writeLog: () => {} });
}

beforeEach(() => {
  gates = [];
});
afterEach(() => served.close());

type Body = Record<string, unknown>;
const V1 = { "a2a-version": "1.0" };

async function rpc(method: string, params: unknown, headers: Record<string, string> = V1): Promise<Body> {
  const response = await fetch(`${served.url}/a2a`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", id: 7, method, params }),
  });
  expect(response.status).toBe(200);
  return (await response.json()) as Body;
}

async function http(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = V1,
): Promise<{ status: number; body: Body }> {
  const response = await fetch(`${served.url}/a2a${path}`, {
    method,
    headers: { ...(body !== undefined && { "content-type": "application/json" }), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Body };
}

/** The events of a stream, each as soon as it has arrived. */
class Stream {
  readonly #controller = new AbortController();
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #text = "";

  private constructor(response: Response, controller: AbortController) {
    this.#controller = controller;
    this.#reader = (response.body as ReadableStream<Uint8Array>).getReader();
  }

  static async open(method: string, params: unknown, headers: Record<string, string> = V1): Promise<Stream> {
    const controller = new AbortController();
    const response = await fetch(`${served.url}/a2a`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", id: 7, method, params }),
      signal: controller.signal,
    });
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    return new Stream(response, controller);
  }

  /** The next event; null at the end. */
  async next(): Promise<Body | null> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end >= 0) {
        const line = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        if (line.startsWith("data: ")) return (JSON.parse(line.slice(6)) as { result: Body }).result;
        continue;
      }
      const { done, value } = await this.#reader.read();
      if (done) return null;
      this.#text += new TextDecoder().decode(value);
    }
  }

  async rest(): Promise<Body[]> {
    const events: Body[] = [];
    for (let event = await this.next(); event !== null; event = await this.next()) events.push(event);
    return events;
  }

  close(): void {
    this.#controller.abort();
  }
}

const message = (messageId: string, more: object = {}) => ({
  message: { messageId, role: "ROLE_USER", parts: [{ text: "hello" }], ...more },
});
const tool = (name: string, args: object = {}) => ({
  message: { messageId: "m", role: "ROLE_USER", parts: [{ data: { tool: name, arguments: args } }] },
});
const violation = (field: string) => ({ error: { code: -32_602, data: [{ fieldViolations: [{ field }] }] } });
const reason = (code: number, name: string) => ({ error: { code, data: [{ reason: name, domain: "a2a-protocol.org" }] } });

describe("rule 1: versions", () => {
  it("takes 1.0 and 0.3, by header or by query, and refuses others", async () => {
    await start(conformanceAgent);
    for (const version of ["1.0", "0.3", "1.0.1", ""])
      expect(await rpc("GetTask", { id: "x" }, { "a2a-version": version })).toMatchObject({ error: { code: -32_001 } });
    expect(await rpc("GetTask", { id: "x" }, { "a2a-version": "2.0" })).toMatchObject(reason(-32_009, "VERSION_NOT_SUPPORTED"));
    expect(await http("GET", "/tasks/x?A2A-Version=9.9", undefined, {})).toMatchObject({
      status: 400,
      body: { error: { status: "FAILED_PRECONDITION" } },
    });
  });

  it("speaks 0.3 to methods with a slash, without a version", async () => {
    await start(conformanceAgent);
    const sent = await rpc(
      "message/send",
      { message: { kind: "message", messageId: "tck-artifact-file", role: "user", parts: [{ kind: "text", text: "go" }] } },
      {},
    );
    expect(sent.result).toMatchObject({
      kind: "task",
      status: { state: "completed" },
      artifacts: [{ parts: [{ kind: "file", file: { bytes: "ZmlsZQ==", name: "output.txt", mimeType: "text/plain" } }] }],
      history: [{ kind: "message", role: "user", parts: [{ kind: "text", text: "go" }] }],
    });
    expect((await rpc("tasks/get", { id: "task-1" }, {})).result).toMatchObject({ kind: "task", id: "task-1" });
    expect(await rpc("tasks/cancel", { id: "task-1" }, {})).toMatchObject({ error: { code: -32_002 } });
    const direct = { kind: "message", messageId: "tck-message-response", role: "user", parts: [{ kind: "data", data: {} }] };
    expect((await rpc("message/send", { message: direct }, {})).result).toMatchObject({ kind: "message", role: "agent" });
    const stream = await Stream.open("message/stream", { message: { ...direct, messageId: "tck-stream-001" } }, {});
    expect(await stream.rest()).toMatchObject([
      { kind: "task", status: { state: "submitted" } },
      { kind: "status-update", status: { state: "working" }, final: false },
      { kind: "artifact-update", artifact: { parts: [{ kind: "text" }] }, lastChunk: false },
      { kind: "status-update", status: { state: "completed" }, final: true },
    ]);
    expect((await http("POST", "/v1/message:send", { message: { ...direct, messageId: "m" } }, {})).body).toMatchObject({ kind: "task" });
  });
});

it("rule 2: takes each field in both spellings, answers in camelCase, and does not touch keys of data", async () => {
  await start(conformanceAgent);
  const data = { some_key: { inner_key: 1 } };
  const sent = await rpc("SendMessage", {
    message: { message_id: "m", role: "ROLE_USER", context_id: "own", parts: [{ data, media_type: "application/json" }], metadata: data },
    configuration: { history_length: 1 },
  });
  expect(sent.result).toMatchObject({
    task: {
      contextId: "own",
      history: [{ messageId: "m", parts: [{ data, mediaType: "application/json" }], metadata: data }],
    },
  });
});

it("rule 3: ignores fields that it does not know, and does not repeat them", async () => {
  await start(conformanceAgent);
  const sent = await rpc("SendMessage", {
    ...message("m", { surprise: "boo", parts: [{ text: "hi", surprise: "boo" }] }),
    surprise: "boo",
  });
  expect(sent.result).toMatchObject({ task: { status: { state: "TASK_STATE_COMPLETED" } } });
  expect(JSON.stringify(sent)).not.toContain("boo");
});

it("rule 4: blocks until the task has ended or needs input, unless returnImmediately is set", async () => {
  await start(shop);
  const now = (await rpc("SendMessage", { ...tool("slow"), configuration: { returnImmediately: true } })).result as { task: Body };
  expect(now.task).toMatchObject({ id: "task-1", status: { state: expect.stringMatching(/SUBMITTED|WORKING/) } });
  const blocking = rpc("SendMessage", tool("slow"));
  while (gates.length < 2) await new Promise(setImmediate);
  for (const open of gates) open();
  expect((await blocking).result).toMatchObject({ task: { status: { state: "TASK_STATE_COMPLETED" } } });
  await served.close();
  await start(conformanceAgent);
  expect((await rpc("SendMessage", message("tck-input-required"))).result).toMatchObject({
    task: { status: { state: "TASK_STATE_INPUT_REQUIRED", message: { role: "ROLE_AGENT" } } },
  });
});

describe("rule 5: ids", () => {
  it("makes task ids itself, keeps a context id, and takes the context from the task", async () => {
    await start(conformanceAgent);
    expect((await rpc("SendMessage", message("tck-input-required"))).result).toMatchObject({
      task: { id: "task-1", contextId: "context-1" },
    });
    expect((await rpc("SendMessage", message("m", { taskId: "task-1" }))).result).toMatchObject({
      task: { id: "task-1", contextId: "context-1", status: { state: "TASK_STATE_COMPLETED" } },
    });
    expect((await rpc("SendMessage", message("m", { contextId: "mine" }))).result).toMatchObject({ task: { contextId: "mine" } });
  });

  it("refuses a task that is unknown, that has ended, or that belongs to another context", async () => {
    await start(conformanceAgent);
    await rpc("SendMessage", message("tck-input-required"));
    await rpc("SendMessage", message("tck-complete-task"));
    expect(await rpc("SendMessage", message("m", { taskId: "task-9" }))).toMatchObject(reason(-32_001, "TASK_NOT_FOUND"));
    expect(await rpc("SendMessage", message("m", { taskId: "task-2" }))).toMatchObject(reason(-32_004, "UNSUPPORTED_OPERATION"));
    expect(await rpc("SendMessage", message("m", { taskId: "task-1", contextId: "other" }))).toMatchObject(violation("contextId"));
  });
});

describe("rule 6: streams", () => {
  it("begin with the task, or are one message, and close at the end", async () => {
    await start(conformanceAgent);
    expect(await (await Stream.open("SendStreamingMessage", message("tck-stream-artifact-chunked"))).rest()).toMatchObject([
      { task: { id: "task-1", status: { state: "TASK_STATE_SUBMITTED" } } },
      { statusUpdate: { taskId: "task-1", contextId: "context-1", status: { state: "TASK_STATE_WORKING" } } },
      { artifactUpdate: { artifact: { artifactId: "chunked", parts: [{ text: "one " }] }, append: false, lastChunk: false } },
      { artifactUpdate: { artifact: { artifactId: "chunked", parts: [{ text: "two" }] }, append: true, lastChunk: true } },
      { statusUpdate: { status: { state: "TASK_STATE_COMPLETED" } } },
    ]);
    expect(await (await Stream.open("SendStreamingMessage", message("tck-message-response"))).rest()).toMatchObject([
      { message: { role: "ROLE_AGENT", parts: [{ text: "A direct answer." }] } },
    ]);
    expect((await (await Stream.open("SendStreamingMessage", message("tck-input-required"))).rest()).at(-1)).toMatchObject({
      statusUpdate: { status: { state: "TASK_STATE_INPUT_REQUIRED" } },
    });
    expect((await rpc("GetTask", { id: "task-1" })).result).toMatchObject({ artifacts: [{ parts: [{ text: "one " }, { text: "two" }] }] });
  });

  it("send the same events to each client, and closing one disturbs neither the others nor the task", async () => {
    await start(shop);
    const first = await Stream.open("SendStreamingMessage", tool("slow"));
    expect(await first.next()).toMatchObject({ task: {} });
    while (gates.length < 1) await new Promise(setImmediate);
    const second = await Stream.open("SubscribeToTask", { id: "task-1" });
    expect(await second.next()).toMatchObject({
      task: { status: { state: "TASK_STATE_WORKING", message: { parts: [{ text: "half" }] } } },
    });
    first.close();
    gates[0]?.();
    expect(await second.rest()).toMatchObject([
      { artifactUpdate: { artifact: { name: "slow", parts: [{ text: "done" }] } } },
      { statusUpdate: { status: { state: "TASK_STATE_COMPLETED" } } },
    ]);
  });
});

it("rule 7: subscribing begins with the task, by GET and by POST; a task that has ended has no stream", async () => {
  await start(shop);
  await rpc("SendMessage", { ...tool("slow"), configuration: { returnImmediately: true } });
  for (const method of ["GET", "POST"]) {
    const response = await fetch(`${served.url}/a2a/tasks/task-1:subscribe`, { method, headers: V1 });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toContain('data: {"task":');
    await reader.cancel();
  }
  await rpc("CancelTask", { id: "task-1" });
  expect(await rpc("SubscribeToTask", { id: "task-1" })).toMatchObject(reason(-32_004, "UNSUPPORTED_OPERATION"));
  expect(await rpc("SubscribeToTask", { id: "task-2" })).toMatchObject(reason(-32_001, "TASK_NOT_FOUND"));
});

it("rule 8: a task that has ended cannot be cancelled; cancelling again is harmless", async () => {
  await start(shop);
  await rpc("SendMessage", { ...tool("slow"), configuration: { returnImmediately: true } });
  for (let times = 0; times < 2; times++)
    expect((await rpc("CancelTask", { id: "task-1" })).result).toMatchObject({ id: "task-1", status: { state: "TASK_STATE_CANCELED" } });
  await rpc("SendMessage", tool("add", { n: 1 }));
  expect(await http("POST", "/tasks/task-2:cancel")).toMatchObject({
    status: 400,
    body: { error: { status: "FAILED_PRECONDITION", details: [{ reason: "TASK_NOT_CANCELABLE" }] } },
  });
});

it("rule 9: lists tasks by their newest status, in pages, without artifacts", async () => {
  await start(shop);
  for (let n = 0; n < 5; n++) await rpc("SendMessage", { message: { ...tool("add", { n }).message, contextId: n < 2 ? "a" : "b" } });
  const first = (await rpc("ListTasks", { pageSize: 2 })).result as { tasks: Body[]; nextPageToken: string };
  expect(first).toMatchObject({ tasks: [{ id: "task-5" }, { id: "task-4" }], totalSize: 5, pageSize: 2 });
  expect(JSON.stringify(first)).not.toContain("artifacts");
  const second = (await rpc("ListTasks", { pageSize: 3, pageToken: first.nextPageToken, includeArtifacts: true })).result;
  expect(second).toMatchObject({ tasks: [{ id: "task-3", artifacts: [{}] }, { id: "task-2" }, { id: "task-1" }], nextPageToken: "" });
  expect((await http("GET", "/tasks?contextId=a&status=TASK_STATE_COMPLETED&pageSize=10")).body).toMatchObject({ totalSize: 2 });
  expect((await rpc("ListTasks", { statusTimestampAfter: "2999-01-01T00:00:00Z" })).result).toMatchObject({ tasks: [], totalSize: 0 });
  for (const [field, value] of Object.entries({
    pageSize: 101,
    pageToken: "x",
    status: "DONE",
    statusTimestampAfter: "now",
    historyLength: -1,
  }))
    expect(await rpc("ListTasks", { [field]: value })).toMatchObject(violation(field));
  expect(await rpc("ListTasks", { pageSize: 0 })).toMatchObject(violation("pageSize"));
});

it("rule 10: shows as much of the history as the client wants", async () => {
  await start(conformanceAgent);
  await rpc("SendMessage", message("tck-input-required"));
  await rpc("SendMessage", message("m", { taskId: "task-1" }));
  const historyOf = async (params: object) => ((await rpc("GetTask", { id: "task-1", ...params })).result as { history?: Body[] }).history;
  expect(await historyOf({})).toHaveLength(3);
  expect(await historyOf({ historyLength: 0 })).toBeUndefined();
  expect(await historyOf({ historyLength: 1 })).toMatchObject([{ messageId: "m" }]);
  expect((await http("GET", "/tasks/task-1?historyLength=2")).body.history).toHaveLength(2);
});

it("rule 11: refuses what the card does not promise", async () => {
  await start(conformanceAgent);
  const push = { taskId: "task-1", id: "p", url: "https://example.com" };
  const refused = reason(-32_003, "PUSH_NOTIFICATION_NOT_SUPPORTED");
  for (const verb of ["Create", "Get", "Delete"]) expect(await rpc(`${verb}TaskPushNotificationConfig`, push)).toMatchObject(refused);
  expect(await rpc("ListTaskPushNotificationConfigs", push)).toMatchObject(refused);
  expect(await rpc("SendMessage", { ...message("m"), configuration: { taskPushNotificationConfig: push } })).toMatchObject(refused);
  for (const method of ["GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"])
    expect(await rpc(method, {})).toMatchObject(reason(-32_004, "UNSUPPORTED_OPERATION"));
  expect((await http("GET", "/extendedAgentCard")).status).toBe(400);
  expect((await http("GET", "/tasks/task-1/pushNotificationConfigs")).status).toBe(400);
});

it("rule 12: answers JSON-RPC with status 200, also errors, and needs application/json", async () => {
  await start(conformanceAgent);
  const post = async (body: string, type = "application/json") => {
    const response = await fetch(`${served.url}/a2a`, { method: "POST", headers: { "content-type": type, ...V1 }, body });
    expect(response.status).toBe(200);
    return response.json();
  };
  expect(await post("{")).toMatchObject({ jsonrpc: "2.0", id: null, error: { code: -32_700 } });
  expect(await post("[]")).toMatchObject({ id: null, error: { code: -32_600 } });
  expect(await post('{"jsonrpc":"1.0","id":1,"method":"GetTask"}')).toMatchObject({ id: 1, error: { code: -32_600 } });
  expect(await post('{"jsonrpc":"2.0","id":"a","method":"Dance"}')).toMatchObject({ id: "a", error: { code: -32_601 } });
  expect(await post('{"jsonrpc":"2.0","id":"a","method":"constructor"}')).toMatchObject({ error: { code: -32_601 } });
  expect(await post('{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}')).toMatchObject({ error: { code: -32_602 } });
  expect(await post("{}", "text/plain")).toMatchObject(reason(-32_005, "CONTENT_TYPE_NOT_SUPPORTED"));
  const wrong = await fetch(`${served.url}/a2a/message:send`, { method: "POST", headers: { "content-type": "text/plain" }, body: "{}" });
  expect([wrong.status, await wrong.json()]).toMatchObject([400, { error: { status: "INVALID_ARGUMENT" } }]);
  for (const [field, broken] of [
    ["message", {}],
    ["message.messageId", { message: { role: "ROLE_USER", parts: [{ text: "a" }] } }],
    ["message.role", { message: { messageId: "m", role: "boss", parts: [{ text: "a" }] } }],
    ["message.parts", { message: { messageId: "m", role: "ROLE_USER", parts: [] } }],
    ["message.parts[0]", { message: { messageId: "m", role: "ROLE_USER", parts: [{ text: "a", url: "b" }] } }],
    ["message.parts[0].raw", { message: { messageId: "m", role: "ROLE_USER", parts: [{ raw: "$" }] } }],
  ] as const)
    expect(await rpc("SendMessage", broken)).toMatchObject(violation(field));
});

it("rule 13: the card can be kept, and says when it has not changed", async () => {
  await start(conformanceAgent);
  const url = `${served.url}/.well-known/agent-card.json`;
  const response = await fetch(url);
  expect(Object.fromEntries(response.headers)).toMatchObject({ "cache-control": "max-age=60", vary: "A2A-Version" });
  const again = await fetch(url, { headers: { "if-none-match": response.headers.get("etag") as string } });
  expect([again.status, await again.text()]).toEqual([304, ""]);
  const newer = await fetch(url, { headers: { ...V1, "if-none-match": response.headers.get("etag") as string } });
  expect(newer.status).toBe(200);
});

it("rule 14: errors do not tell an unknown task from one of somebody else", async () => {
  await start(conformanceAgent);
  const mine = await served.host.create({ id: "mine" });
  await mine.conversations.send({ messageId: "m", parts: [{ text: "secret" }] });
  await mine.conversations.settled("task-1");
  expect(await rpc("GetTask", { id: "task-1" })).toEqual(await rpc("GetTask", { id: "task-1" }));
  expect(JSON.stringify(await rpc("GetTask", { id: "task-1" }))).toBe(JSON.stringify(await rpc("GetTask", { id: "task-8" })));
});

describe("the card", () => {
  it("has the fields of both versions, unless the client speaks 1.0", async () => {
    await start(conformanceAgent);
    const get = async (headers: Record<string, string>) =>
      (await (await fetch(`${served.url}/.well-known/agent-card.json`, { headers })).json()) as Body;
    const url = `${served.url}/a2a`;
    const interfaces = [
      { url, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
      { url, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
    ];
    const hybrid = await get({});
    expect(hybrid).toMatchObject({
      name: "shop",
      version: "1.2.0",
      url,
      preferredTransport: "JSONRPC",
      protocolVersion: "0.3",
      supportedInterfaces: [...interfaces, { protocolVersion: "0.3" }],
      skills: [{ id: "conformance", name: "conformance", tags: ["test"] }],
    });
    const pure = await get(V1);
    expect(pure.supportedInterfaces).toEqual(interfaces);
    expect(Object.keys(pure)).not.toContain("url");
  });

  it("lists the tools of an environment as skills, at the address that the gateway names", async () => {
    await start(shop);
    await served.host.create({ id: "b" });
    const card = async (headers = {}) =>
      (await (await fetch(`${served.url}/env-instance/b/.well-known/agent-card.json`, { headers })).json()) as Body;
    expect(await card()).toMatchObject({
      url: `${served.url}/env-instance/b/a2a`,
      skills: [{ id: "add", name: "add", description: "Adds.", tags: ["tool"] }, { id: "slow" }, { id: "picture" }, { id: "fail" }],
    });
    const told = { "aenv-base-url": "https://aenv.example/agent/key", "aenv-needs-token": "1" };
    expect(await card(told)).toMatchObject({
      url: "https://aenv.example/agent/key/a2a",
      securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: "Bearer" } } },
    });
  });
});

describe("an environment without an agent", () => {
  it("runs the tool that a data part names, and its result is an artifact", async () => {
    await start(shop);
    const run = async (name: string, args?: object) => ((await rpc("SendMessage", tool(name, args))).result as { task: Body }).task;
    expect(await run("add", { n: 3 })).toMatchObject({
      status: { state: "TASK_STATE_COMPLETED" },
      artifacts: [{ artifactId: "artifact-1", name: "add", parts: [{ data: { total: 3 }, mediaType: "application/json" }] }],
    });
    expect(await run("picture")).toMatchObject({ artifacts: [{ parts: [{ raw: "iVBORw0KGgoA", mediaType: "image/png" }] }] });
    expect(await run("fail")).toMatchObject({ status: { state: "TASK_STATE_FAILED", message: { parts: [{ text: "sold out" }] } } });
    expect(await run("add", { n: "x" })).toMatchObject({ status: { state: "TASK_STATE_FAILED" } });
    expect(await run("steal")).toMatchObject({ status: { state: "TASK_STATE_REJECTED" } });
  });

  it("rejects other messages with the list of its tools", async () => {
    await start(shop);
    const { result } = await rpc("SendMessage", message("m"));
    expect(result).toMatchObject({ task: { status: { state: "TASK_STATE_REJECTED" } } });
    expect(JSON.stringify(result)).toContain("add, slow, picture, fail");
  });

  it("keeps its tasks in a snapshot, which does not change its digest", async () => {
    await start(shop);
    const [instance] = served.host.list();
    const digest = () => fetch(`${served.url}/state/digest`).then((response) => response.json());
    await rpc("SendMessage", tool("add", { n: 0 }));
    const before = await digest();
    await rpc("SendMessage", tool("add", { n: 0 }));
    expect(await digest()).toEqual(before);
    const [copy] = await served.host.fork(instance?.id as string, 1);
    expect(copy?.conversations.list().map(({ id }) => id)).toEqual(["task-2", "task-1"]);
  });
});
