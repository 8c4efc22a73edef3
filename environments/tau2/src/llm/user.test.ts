import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { scriptedOpenAi } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import type { Message } from "../core/messages/messages.ts";
import { openLibrary } from "../fixtures/library.ts";
import { Dict, PyFloat } from "../python/values/values.ts";
import { RecordedUser } from "./recorded-user.ts";
import { UserSimulator } from "./user.ts";

const settingsFor = (baseUrl: string) => ({ model: "scripted", baseUrl, apiKey: "sk-quiet", temperature: 0 });
const greeting: Message = { role: "assistant", content: "Hi!", tool_calls: null };
const tools = openLibrary()
  .create()
  .getUserTools()
  .map(({ schema }) => schema);

describe("the user simulator", () => {
  it("sends its prompt to the model, with the agent's messages as the user's", async () => {
    await using model = await scriptedOpenAi(["Tides, please"]);
    const user = new UserSimulator({ settings: settingsFor(model.baseUrl), prompt: "Be ann.", tools });
    expect(await user.reply([greeting])).toEqual({ role: "user", content: "Tides, please", tool_calls: null });
    const [request] = model.requests;
    expect(request?.messages).toEqual([
      { role: "system", text: "Be ann." },
      { role: "user", text: "Hi!" },
    ]);
    expect(request?.tools.map(({ name }) => name)).toEqual(["read_notices"]);
    expect(request?.body).toMatchObject({ temperature: 0, tool_choice: "auto" });
  });

  it("turns the model's tool calls into the user's, and keeps ints and floats apart", async () => {
    await using model = await scriptedOpenAi([{ toolCalls: [{ name: "read_notices", arguments: '{"a": 2.0, "b": 2}', id: "x" }] }, "read"]);
    const user = new UserSimulator({ settings: settingsFor(model.baseUrl), prompt: "Be ann.", tools });
    const reply = await user.reply([greeting]);
    expect(reply.tool_calls).toEqual([
      { id: "x", name: "read_notices", arguments: Dict.of({ a: new PyFloat(2), b: 2 }), requestor: "user" },
    ]);
    const result: Message = { role: "tool", id: "x", content: "[]", requestor: "user", error: false };
    expect((await user.reply([greeting, reply, result])).content).toBe("read");
    expect(model.requests[1]?.messages[2]?.toolCalls).toEqual([{ id: "x", name: "read_notices", arguments: '{"a": 2.0, "b": 2}' }]);
  });

  it("retries when the endpoint is overloaded, but not when it refuses", async () => {
    let requests = 0;
    await using model = await scriptedOpenAi(() => (++requests < 3 ? { status: 503, message: "busy" } : "there"));
    const pauses: number[] = [];
    const pause = async (ms: number) => void pauses.push(ms);
    const user = new UserSimulator({ settings: settingsFor(model.baseUrl), prompt: "Be ann.", tools: [], pause });
    expect((await user.reply([greeting])).content).toBe("there");
    expect(pauses).toEqual([500, 1_000]);
    await using strict = await scriptedOpenAi(() => ({ status: 400, message: "no: the key sk-quiet" }));
    const refused = new UserSimulator({ settings: settingsFor(strict.baseUrl), prompt: "Be ann.", tools: [], pause });
    const problem = await refused.reply([greeting]).catch(String);
    expect(problem).toContain("answered 400");
    expect(problem).not.toContain("sk-quiet");
    expect(pauses).toHaveLength(2);
  });

  it.each<[string, RequestListener, string]>([
    ["never answers", () => {}, "gave no answer within 200 ms"],
    ["stops in the middle of its answer", (_, response) => response.writeHead(200).write("{"), "gave no answer within 200 ms"],
    ["hangs up", (request) => request.socket.destroy(), "cannot be reached"],
  ])("gives up on an endpoint that %s, after some retries", async (_, listener, problem) => {
    let requests = 0;
    const server = createServer((request, response) => {
      requests++;
      listener(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const settings = { ...settingsFor(baseUrl), timeoutMs: 200 };
    const user = new UserSimulator({ settings, prompt: "Be ann.", tools: [], pause: async () => {} });
    await expect(user.reply([greeting])).rejects.toThrow(problem);
    expect(requests).toBe(4);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it("cancels the request when its signal fires", async () => {
    const dropped = Promise.withResolvers<void>();
    const caller = new AbortController();
    const server = createServer((request) => {
      request.socket.once("close", () => dropped.resolve());
      caller.abort(new Error("not needed"));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const recorded = new RecordedUser(new UserSimulator({ settings: settingsFor(baseUrl), prompt: "Be ann.", tools: [] }));
    await expect(recorded.reply([greeting], caller.signal)).rejects.toThrow("not needed");
    await dropped.promise;
    expect(recorded.replies).toEqual([]);
    await new Promise((resolve) => server.close(resolve));
  });

  it("does not wait for a retry when its signal fires", async () => {
    const caller = new AbortController();
    await using model = await scriptedOpenAi(() => {
      caller.abort(new Error("not needed"));
      return { status: 503, message: "busy", headers: { "retry-after": "60" } };
    });
    const user = new UserSimulator({ settings: settingsFor(model.baseUrl), prompt: "Be ann.", tools: [] });
    await expect(user.reply([greeting], caller.signal)).rejects.toThrow();
    expect(model.requests).toHaveLength(1);
  });

  it("waits as long as an overloaded endpoint asks for, at most a minute", async () => {
    const asks = [{ "retry-after": "7" }, { "retry-after-ms": "30" }, { "retry-after": "86400" }];
    await using model = await scriptedOpenAi(({ index }) => {
      const headers = asks[index];
      return headers === undefined ? "there" : { status: 429, message: "slowly", headers: headers as Record<string, string> };
    });
    const pauses: number[] = [];
    const pause = async (ms: number) => void pauses.push(ms);
    await new UserSimulator({ settings: settingsFor(model.baseUrl), prompt: "Be ann.", tools: [], pause }).reply([greeting]);
    expect(pauses).toEqual([7_000, 30, 60_000]);
  });

  it("refuses a history with the agent's tool calls", async () => {
    const user = new UserSimulator({ settings: settingsFor("http://127.0.0.1:9/v1"), prompt: "Be ann.", tools: [] });
    await expect(user.reply([{ role: "assistant", content: null, tool_calls: [] }])).rejects.toThrow("Tool calls are not supported");
  });
});

describe("a recorded user", () => {
  it("repeats the recorded replies, then the live user continues", async () => {
    const call = { id: "x", name: "read_notices", arguments: Dict.of({ n: new PyFloat(1) }), requestor: "user" as const };
    const said = { role: "user" as const, content: null, tool_calls: [call] };
    const first = new RecordedUser({ reply: async () => said });
    await first.reply([]);
    const second = new RecordedUser({ reply: async () => ({ role: "user", content: "alive", tool_calls: null }) }, first.replies);
    expect(await second.reply([])).toMatchObject(said);
    expect((await second.reply([])).content).toBe("alive");
    expect(first.replies).toHaveLength(1);
    expect(second.replies).toHaveLength(2);
  });

  it("repeats a recorded error", async () => {
    const first = new RecordedUser({ reply: () => Promise.reject(new Error("no line")) });
    await expect(first.reply([])).rejects.toThrow("no line");
    await expect(new RecordedUser({ reply: () => Promise.reject(new Error("not called")) }, first.replies).reply([])).rejects.toThrow(
      "no line",
    );
  });
});
