import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { readBoundedText } from "@aenv/contract";
import { afterEach, describe, expect, it } from "vitest";
import { agentEnvironment } from "../agent/agent-environment.ts";
import { compileEnvironment } from "../compile/environment.ts";
import { quietHooks } from "../instances/call.ts";
import { Host } from "../instances/host.ts";
import type { Instance } from "../instances/instance.ts";
import { type RemoteAgentOptions, remoteAgent } from "./remote-agent.ts";

interface Heard {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly params: Record<string, never>;
}

interface Answering {
  /** Sends one event of a stream, in the envelope of the binding. */
  event(value: object): void;
  /** Answers without a stream. */
  result(value: object): void;
  error(code: number, message: string): void;
  readonly response: ServerResponse;
  readonly heard: readonly Heard[];
}

// biome-ignore lint/suspicious/noExplicitAny: tests read messages of every shape
type Params = Record<string, any>;
// biome-ignore lint/suspicious/noExplicitAny: and answers
type Answer = any;
type Script = (method: string, params: Params, answering: Answering) => void;

interface Version {
  readonly version: "1.0" | "0.3";
  readonly binding: "JSONRPC" | "HTTP+JSON";
}

const servers: Server[] = [];
const hosts: Host[] = [];

afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close("the test is over");
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** A scripted agent. `stream` is called for a send, `subscribe`, `get` and `cancel` for the others, in every version and binding. */
async function startAgent(
  script: Script,
  { version = "1.0", binding = "JSONRPC", streaming = true, card = {} }: Partial<Version> & { streaming?: boolean; card?: object } = {},
) {
  const heard: Heard[] = [];
  const server = createServer(async (request, response) => {
    const path = request.url ?? "";
    if (path.endsWith("agent-card.json")) {
      heard.push({ method: "card", path, headers: request.headers, params: {} });
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/a2a`;
      const own =
        version === "1.0"
          ? { supportedInterfaces: [{ url, protocolBinding: binding, protocolVersion: version }] }
          : { url, preferredTransport: binding, protocolVersion: "0.3.0" };
      const skills = [{ id: "talk", name: "Talk", description: "Talks.", tags: ["chat"] }];
      response.end(
        JSON.stringify({
          name: "scripted",
          description: "A scripted agent.",
          version: "1",
          capabilities: { streaming },
          skills,
          ...own,
          ...card,
        }),
      );
      return;
    }
    const text = await readBoundedText(request, { maxBytes: 1_000_000 });
    const body = text === "" ? {} : JSON.parse(text);
    const method = operationOf(body.method ?? path);
    const params = body.params ?? { ...body, ...(/\/tasks\/([^:]+)/.exec(path) && { id: /\/tasks\/([^:]+)/.exec(path)?.[1] }) };
    heard.push({ method, path, headers: request.headers, params });
    const wrap = (result: object) => JSON.stringify(binding === "JSONRPC" ? { jsonrpc: "2.0", id: body.id, result } : result);
    script(method, params, {
      heard,
      response,
      event: (value) => {
        if (!response.headersSent) response.writeHead(200, { "content-type": "text/event-stream" });
        response.write(`data: ${wrap(value)}\n\n`);
      },
      result: (value) => void response.writeHead(200, { "content-type": "application/json" }).end(wrap(value)),
      error: (code, message) => {
        const rpc = { jsonrpc: "2.0", id: body.id, error: { code, message } };
        const http = { error: { code: 400, status: "FAILED_PRECONDITION", message, details: [{ reason: "UNSUPPORTED_OPERATION" }] } };
        response
          .writeHead(binding === "JSONRPC" ? 200 : 400, { "content-type": "application/json" })
          .end(JSON.stringify(binding === "JSONRPC" ? rpc : http));
      },
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  servers.push(server);
  const { port } = server.address() as AddressInfo;
  return { heard, url: `http://127.0.0.1:${port}/agents/one`, allowPrivate: [`127.0.0.1:${port}`], server };
}

function operationOf(name: string): string {
  const known: readonly (readonly [RegExp, string])[] = [
    [/SendStreamingMessage|message\/stream|message:stream/, "stream"],
    [/SendMessage|message\/send|message:send/, "send"],
    [/Subscribe|resubscribe|:subscribe/, "subscribe"],
    [/Cancel|tasks\/cancel|:cancel/, "cancel"],
    [/GetTask|tasks\/get|\/tasks\//, "get"],
  ];
  return known.find(([pattern]) => pattern.test(name))?.[1] ?? name;
}

/** Words of either version. */
const words = ({ version }: Pick<Version, "version">) => {
  const isNew = version === "1.0";
  const state = (name: string) => (isNew ? `TASK_STATE_${name.toUpperCase().replaceAll("-", "_")}` : name);
  const text = (value: string) => (isNew ? { text: value } : { kind: "text", text: value });
  const said = (value: string) => ({
    messageId: "m",
    role: isNew ? "ROLE_AGENT" : "agent",
    parts: [text(value)],
    ...(!isNew && { kind: "message" }),
  });
  const task = (name: string, more: object = {}) => ({ id: "t1", contextId: "c1", status: { state: state(name) }, ...more });
  return {
    text,
    said,
    task: (name: string, more?: object) => (isNew ? { task: task(name, more) } : { kind: "task", ...task(name, more) }),
    bareTask: (name: string, more?: object) => ({ ...(!isNew && { kind: "task" }), ...task(name, more) }),
    status: (name: string, message?: string) => {
      const update = {
        taskId: "t1",
        contextId: "c1",
        status: { state: state(name), ...(message !== undefined && { message: said(message) }) },
      };
      return isNew ? { statusUpdate: update } : { kind: "status-update", final: name !== "working", ...update };
    },
    artifact: (id: string, value: string, more: object = {}) => {
      const update = { taskId: "t1", contextId: "c1", artifact: { artifactId: id, parts: [text(value)] }, ...more };
      return isNew ? { artifactUpdate: update } : { kind: "artifact-update", ...update };
    },
    message: (value: string) => (isNew ? { message: said(value) } : said(value)),
  };
};

async function openHost(url: string, options: RemoteAgentOptions = {}): Promise<Host> {
  const agent = remoteAgent(url, options);
  const rewards = [{ name: "one", score: () => 1 }];
  const definition = agentEnvironment({ description: "An agent elsewhere.", agent, rewards });
  const host = new Host(await compileEnvironment(definition, { name: "remote", version: "1.0.0" }), () => {});
  hosts.push(host);
  return host;
}

const open = async (url: string, options?: RemoteAgentOptions) =>
  (await openHost(url, options)).create({ environment_variables: { TOKEN: "abc" } });

async function call(instance: Instance, name: string, args: object): Promise<Answer> {
  const tool = instance.tools.get(name);
  if (tool === undefined) throw new Error(`there is no tool ${name}`);
  const { structuredContent, content, isError } = await instance.callTool(tool, args, quietHooks());
  if (isError === true) throw new Error(content.map((block) => block.text).join(""));
  return structuredContent ?? content[0]?.text;
}

const versions: readonly Version[] = [
  { version: "1.0", binding: "JSONRPC" },
  { version: "1.0", binding: "HTTP+JSON" },
  { version: "0.3", binding: "JSONRPC" },
  { version: "0.3", binding: "HTTP+JSON" },
];

describe.each(versions)("a remote agent of A2A $version over $binding", (how) => {
  const { task, bareTask, status, artifact, message, text } = words(how);

  it("streams its events, and its conversation goes on", async () => {
    const agent = await startAgent((_method, params, { event, response }) => {
      if (params.message.contextId === undefined) {
        event(task("submitted"));
        event(status("working", "thinking"));
        event(artifact("a", "one"));
        event(artifact("a", " two", { append: true, lastChunk: true }));
        event(status("input-required", "Which?"));
      } else {
        event(task("working"));
        event(status("completed", `Done with ${params.message.parts[0].text}.`));
      }
      response.end();
    }, how);
    const instance = await open(agent.url, agent);
    const asked = await call(instance, "send_message", { message: "hello" });
    expect(asked).toMatchObject({ state: "input-required", reply: "Which?", artifacts: [{ parts: [{ text: "one" }, { text: " two" }] }] });
    const done = await call(instance, "send_message", { message: "this", task_id: asked.task_id });
    expect(done).toMatchObject({ state: "completed", reply: "Done with this.", context_id: asked.context_id });
    const [card, first, , second] = agent.heard;
    expect(card?.path).toBe("/agents/one/.well-known/agent-card.json");
    expect([first?.headers["a2a-version"], second?.params.message]).toMatchObject([
      how.version,
      { contextId: "c1", taskId: "t1", parts: [text("this")] },
    ]);
  });

  it("is subscribed to again when the stream breaks off, and nothing is heard twice", async () => {
    const agent = await startAgent((method, _params, { event, response }) => {
      if (method === "stream") {
        event(task("working"));
        event(artifact("a", "one"));
        setImmediate(() => response.destroy());
      } else {
        event(task("working", { artifacts: [{ artifactId: "a", parts: [text("one"), text("two")] }] }));
        event(status("completed", "Done."));
        response.end();
      }
    }, how);
    const answer = await call(await open(agent.url, agent), "send_message", { message: "hello" });
    expect(answer).toMatchObject({ state: "completed", reply: "Done.", artifacts: [{ parts: [{ text: "one" }, { text: "two" }] }] });
    expect(agent.heard.map(({ method }) => method)).toEqual(["card", "stream", "subscribe"]);
  });

  it("is asked for the task when it has ended before the subscription", async () => {
    const agent = await startAgent((method, _params, { event, error, result, response }) => {
      if (method === "stream") {
        event(task("working"));
        response.end();
      } else if (method === "subscribe") error(-32_004, "the task has ended");
      else result(bareTask("completed", { artifacts: [{ artifactId: "a", parts: [text("result")] }] }));
    }, how);
    expect(await call(await open(agent.url, agent), "chat", { message: "hello" })).toBe("result");
    expect(agent.heard.map(({ method }) => method)).toEqual(["card", "stream", "subscribe", "get"]);
  });

  it("without streams is polled, and may answer at once with a message", async () => {
    let polls = 0;
    const agent = await startAgent(
      (method, params, { result }) => {
        if (params.message?.parts[0].text === "quick") result(message("At once."));
        else if (method === "send") result(task("submitted"));
        else
          result(
            bareTask(++polls < 2 ? "working" : "completed", {
              status: {
                state:
                  how.version === "1.0" ? (polls < 2 ? "TASK_STATE_WORKING" : "TASK_STATE_COMPLETED") : polls < 2 ? "working" : "completed",
                ...(polls < 2 ? {} : { message: words(how).said("Later.") }),
              },
            }),
          );
      },
      { ...how, streaming: false },
    );
    const instance = await open(agent.url, agent);
    expect(await call(instance, "chat", { message: "quick" })).toBe("At once.");
    expect(await call(instance, "chat", { message: "slow" })).toBe("Later.");
    expect(agent.heard.map(({ method }) => method)).toEqual(["card", "send", "card", "send", "get", "get"]);
  });
});

describe("a remote agent", () => {
  const { task, status, message } = words({ version: "1.0" });

  it("that fails or rejects has done so itself: the task says it, and the episode is scored", async () => {
    const agent = await startAgent((_method, { message: { parts } }, { event, response }) => {
      event(task("working"));
      event(status(parts[0].text, "No."));
      response.end();
    });
    const instance = await open(agent.url, agent);
    expect(await call(instance, "send_message", { message: "rejected" })).toMatchObject({ state: "rejected", reply: "No." });
    await call(instance, "send_message", { message: "failed" }).then(
      (answer) => expect(answer).toMatchObject({ state: "failed" }),
      (error: Error) => expect(error.message).toMatch(/failed: No\./),
    );
    expect(await instance.endpoints.reward({}, quietHooks())).toBe(1);
  });

  it("that cannot be reached makes the episode unscored", async () => {
    const agent = await startAgent(() => undefined);
    agent.server.close();
    agent.server.closeAllConnections();
    const instance = await open(agent.url, agent);
    await call(instance, "chat", { message: "hello" }).catch(() => undefined);
    await expect(instance.endpoints.reward({}, quietHooks())).rejects.toMatchObject({ code: "model.failed" });
  });

  it("is not sent a message twice when the connection broke off after it", async () => {
    const agent = await startAgent((_method, _params, { response }) => void response.destroy());
    const instance = await open(agent.url, agent);
    await call(instance, "chat", { message: "hello" }).catch(() => undefined);
    expect(agent.heard.map(({ method }) => method)).toEqual(["card", "stream"]);
  });

  it("has its task cancelled when the turn takes too long", async () => {
    const agent = await startAgent((method, _params, { event, result }) => (method === "cancel" ? result({}) : event(task("working"))));
    const instance = await open(agent.url, { ...agent, turnTimeoutMs: 300 });
    await call(instance, "chat", { message: "hello" }).catch(() => undefined);
    await expect
      .poll(() => agent.heard.map(({ method, params }) => [method, params.id]))
      .toEqual([
        ["card", undefined],
        ["stream", undefined],
        ["cancel", "t1"],
      ]);
  });

  it("that answers without end is cut off", { timeout: 30_000 }, async () => {
    const agent = await startAgent((_method, _params, { event, response }) => {
      event(task("working"));
      const more = (): void => void response.write("x".repeat(1_000_000), () => more());
      more();
    });
    const instance = await open(agent.url, agent);
    await call(instance, "chat", { message: "hello" }).catch(() => undefined);
    await expect(instance.endpoints.reward({}, quietHooks())).rejects.toMatchObject({
      code: "model.failed",
      message: expect.stringMatching(/larger than/),
    });
  });

  it("is neither stored nor forked once there is a conversation", async () => {
    const agent = await startAgent((_method, _params, { event }) => event(message("Hello.")));
    const host = await openHost(agent.url, agent);
    const instance = await host.create();
    await instance.snapshot();
    await call(instance, "chat", { message: "hello" });
    await expect(instance.snapshot()).rejects.toMatchObject({ code: "snapshot.unsupported" });
    await expect(host.fork(instance.id, 1)).rejects.toMatchObject({ code: "snapshot.unsupported" });
  });
});

describe("the card of a remote agent", () => {
  const failure = async (url: string, options?: RemoteAgentOptions): Promise<string> => {
    const instance = await open(url, options);
    await call(instance, "chat", { message: "hello" }).catch(() => undefined);
    return instance.endpoints.reward({}, quietHooks()).then(
      () => "scored",
      (error: Error) => error.message,
    );
  };

  it("at a private address is refused unless it is allowed", async () => {
    const agent = await startAgent(() => undefined);
    expect(await failure(agent.url)).toMatch(/which is refused/);
    expect(await failure("http://169.254.169.254/latest/")).toMatch(/which is refused/);
    expect(agent.heard).toEqual([]);
  });

  it("that points to a private address is refused, and nothing is sent there", async () => {
    const target = await startAgent(() => undefined);
    for (const url of [
      target.url,
      "http://169.254.169.254/a2a",
      "http://[::ffff:10.0.0.1]/",
      "http://localhost:9/",
      "file:///etc/passwd",
    ]) {
      const interfaces = [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
      const agent = await startAgent(() => undefined, { card: { supportedInterfaces: interfaces } });
      expect(await failure(agent.url, agent), url).toMatch(/the card of the agent leads elsewhere/);
    }
    expect(target.heard).toEqual([]);
  });

  it("that points to another host gets no headers", async () => {
    const target = await startAgent(() => undefined);
    const interfaces = [{ url: target.url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
    const agent = await startAgent(() => undefined, { card: { supportedInterfaces: interfaces } });
    const options = { allowPrivate: [...agent.allowPrivate, ...target.allowPrivate], headers: { authorization: `Bearer ${"$"}{TOKEN}` } };
    expect(await failure(agent.url, options)).toMatch(/the headers are for/);
    expect([agent.heard[0]?.headers.authorization, target.heard]).toEqual(["Bearer abc", []]);
  });

  it("is used for the first interface of 1.0 that is spoken here, else of 0.3", async () => {
    const agent = await startAgent((_method, _params, { event }) => event(words({ version: "1.0" }).message("Hello.")));
    const base = new URL(agent.url).origin;
    const one = (path: string, protocolBinding: string, protocolVersion: string) => ({
      url: `${base}/${path}`,
      protocolBinding,
      protocolVersion,
    });
    const all = [one("grpc", "GRPC", "1.0"), one("old", "JSONRPC", "0.3"), one("new", "JSONRPC", "1.0"), one("rest", "HTTP+JSON", "1.0")];
    const carded = await startAgent(() => undefined, { card: { supportedInterfaces: all } });
    await call(await open(carded.url, { allowPrivate: [...agent.allowPrivate, ...carded.allowPrivate] }), "chat", { message: "hello" });
    expect(agent.heard.map(({ path }) => path)).toEqual(["/new"]);
    const none = await startAgent(() => undefined, { card: { supportedInterfaces: all.slice(0, 1) } });
    expect(await failure(none.url, none)).toMatch(/speaks neither/);
  });
});
