import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ScriptedOpenAi, scriptedOpenAi } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { Environment } from "../index.ts";
import { callTool, urlOf } from "./calls.ts";
import { startServerProcess } from "./crash/server-process.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

/** One unique text for each way in which a key comes. */
const SECRET_KEY = "zq-secret-key-4b1d";
const REQUEST_KEY = "zq-request-key-8c2e";
const HEADER = "zq-header-key-11fa";

let home: string;
let platform: Platform;
let model: ScriptedOpenAi;
let ref: string;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "aenv-models-"));
  const secretsDir = join(home, "secrets");
  mkdirSync(join(secretsDir, "default"), { recursive: true });
  writeFileSync(join(secretsDir, "default", "model-key"), `${SECRET_KEY}\n`);
  model = await scriptedOpenAi(({ messages, model: name }) => (messages.at(-1)?.text.startsWith("Is ") ? "yes" : `${name} knows`));
  platform = await startPlatform({ home, flags: { secretsDir } });
  const main = { baseUrl: model.baseUrl, name: "wise", secret: "model-key" };
  ref = await publish(platform, projects.advisor, { isolation: "shared", declaredModels: { main } });
});
afterAll(async () => {
  await platform?.close();
  await model?.close();
  rmSync(home, { recursive: true, force: true });
});

const ask = (id: string, question = "What now?", name = "main") => callTool(urlOf(platform, id), "ask", { question, model: name });
const score = async (id: string) => (await fetch(urlOf(platform, id, "/task/reward"), { method: "POST" })).json();

/** All files of the server: its store, its logs, the files of sandboxes. */
function filesOf(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === "secrets" ? [] : filesOf(path);
    return entry.isFile() ? [path] : [];
  });
}

describe("a model that an environment declares", () => {
  it("answers its tools and rewards, with the key of a secret, and is called by the server", async () => {
    const { id } = await platform.create(ref);
    expect(await ask(id)).toMatchObject({ text: "wise knows", isError: false });
    expect(model.requests.at(-1)).toMatchObject({ model: "wise", api: "chat", headers: { authorization: `Bearer ${SECRET_KEY}` } });
    expect(await score(id)).toMatchObject({ data: 1 });
  });

  it("is there for forks too, also those in a process of their own", async () => {
    for (const isolation of ["shared", "instance"] as const) {
      const main = { baseUrl: model.baseUrl, name: "wise", secret: "model-key" };
      const own = isolation === "shared" ? ref : await publish(platform, projects.advisor, { isolation, declaredModels: { main } });
      const { id } = await platform.create(own);
      const [fork] = (await platform.demand("POST", `/env-instance/${id}/fork`, { count: 1 })) as { id: string }[];
      expect(await ask(fork?.id ?? "")).toMatchObject({ text: "wise knows" });
    }
  });

  it("is replaced by one that the request names, of any API", async () => {
    for (const api of ["chat", "responses", "messages"] as const) {
      const own = { base_url: model.baseUrl, name: `of-${api}`, api, api_key: REQUEST_KEY, headers: { "x-extra": HEADER } };
      const { id } = await platform.create(ref, { models: { main: own, second: { base_url: model.baseUrl, name: "second" } } });
      expect(await ask(id)).toMatchObject({ text: `of-${api} knows` });
      expect(model.requests.at(-1)).toMatchObject({ api, headers: { "x-extra": HEADER } });
      expect(await ask(id, "And?", "second")).toMatchObject({ isError: false });
    }
  });

  it("keeps its key out of the sandbox, the answers, the store and every file of the server", async () => {
    const own = { base_url: model.baseUrl, name: "own", api_key: REQUEST_KEY, headers: { "x-extra": HEADER } };
    const { id } = await platform.create(ref, { models: { other: own } });
    await ask(id, "What now?", "other");
    await ask(id);
    const seen = [
      JSON.stringify(await callTool(urlOf(platform, id), "look")),
      JSON.stringify(await platform.demand("GET", `/env-instance/${id}`)),
      JSON.stringify(await platform.demand("GET", `/env-instance/${id}/events`)),
      JSON.stringify(await platform.ask("GET", `/env-instance/${id}/logs`)),
    ];
    const files = filesOf(home);
    expect(files.some((file) => file.endsWith(".db") || file.includes("sqlite"))).toBe(true);
    for (const key of [SECRET_KEY, REQUEST_KEY, HEADER]) {
      for (const text of seen) expect(text).not.toContain(key);
      for (const file of files) expect([file, readFileSync(file).includes(key)]).toEqual([file, false]);
    }
  });
});

describe("a model of a trainer", () => {
  const own = () => ({ main: { base_url: model.baseUrl, name: "trained", api_key: REQUEST_KEY } });
  const post = async (path: string, body: object) => {
    const headers = { "content-type": "application/json" };
    return (await fetch(platform.controlUrl + path, { method: "POST", headers, body: JSON.stringify(body) })).json();
  };

  it("is called by the environment of a session", async () => {
    const { session } = (await post("/sessions", { environment: ref, models: own() })) as { session: string };
    expect(await post(`/sessions/${session}/step`, { tool: { name: "ask", arguments: { question: "What now?" } } })).toMatchObject({
      observation: "trained knows",
    });
    expect(await post(`/sessions/${session}/score`, {})).toMatchObject({ outcome: { kind: "scored", reward: 1 } });
  });

  it("is called by the environment of a rollout, whose outcome is unscored because of the model if that fails", async () => {
    const broken = await scriptedOpenAi([{ status: 403, message: "no" }]);
    onTestFinished(() => broken.close());
    const agent = { kind: "scripted", options: { actions: [{ tool: "ask", arguments: { question: "What now?" } }] } };
    const rollouts = [
      { id: "works", environment: ref, agent, models: own() },
      { id: "fails", environment: ref, agent, models: { main: { base_url: broken.baseUrl, name: "x" } } },
    ];
    const results = ((await post("/rollouts", { rollouts, stream: false })) as { accepted: string[] }).accepted;
    expect(results).toEqual(["works", "fails"]);
    const doneOf = async (id: string) => (await fetch(`${platform.controlUrl}/rollouts/${id}?wait=60`)).json();
    await expect.poll(() => doneOf("works"), { timeout: 60_000 }).toMatchObject({ outcome: { kind: "scored", reward: 1 } });
    await expect.poll(() => doneOf("fails"), { timeout: 60_000 }).toMatchObject({ outcome: { kind: "unscored", cause: "model" } });
  });
});

describe("the recording of an episode", () => {
  it("is in the result of a rollout, beside what the agent did", async () => {
    const agent = { kind: "scripted", options: { actions: [{ tool: "ask", arguments: { question: "What now?" } }] } };
    const rollouts = [{ id: "recorded", environment: ref, agent }];
    const headers = { "content-type": "application/json" };
    await fetch(`${platform.controlUrl}/rollouts`, { method: "POST", headers, body: JSON.stringify({ rollouts }) });
    const result = async () => (await fetch(`${platform.controlUrl}/rollouts/recorded`)).json();
    await expect.poll(result, { timeout: 60_000 }).toMatchObject({
      outcome: { kind: "scored", reward: 1 },
      turns: [],
      recording: [
        {
          path: "",
          n: 0,
          model: "main",
          called_by: 0,
          messages: [{ content: "What now?" }],
          answer: { message: { content: "wise knows" } },
        },
        { n: 1, called_by: null, answer: { message: { content: "yes" } } },
      ],
    });
  });

  it("plays the episode again after the model has gone", async () => {
    const gone = await scriptedOpenAi(({ messages }) => (messages.at(-1)?.text.startsWith("Is ") ? "yes" : "go north"));
    onTestFinished(() => gone.close());
    const addresses = { controlUrl: platform.controlUrl, dataUrl: platform.dataUrl };
    const models = { main: { base_url: gone.baseUrl, name: "gone", api_key: REQUEST_KEY } };
    await using env = await Environment.create(ref, { ...addresses, models });
    const said = (await env.callTool("ask", { question: "Where to?" })).text;
    const { reward } = await env.score();
    const entries = [...(await env.episode.recording())];
    await gone.close();
    await env.reset({ recording: { mode: "recorded", entries } });
    expect((await env.callTool("ask", { question: "Where to?" })).text).toBe(said);
    expect(await env.score()).toMatchObject({ reward });
    await expect(env.callTool("ask", { question: "Why?" })).rejects.toThrow("the recording has no answer to this call");
  });
});

describe("a model that fails", () => {
  it("fails the call and the reward with model.failed: it is no result of a tool and no score", async () => {
    const broken = await scriptedOpenAi([{ status: 401, message: `Incorrect API key provided: ${REQUEST_KEY}` }]);
    onTestFinished(() => broken.close());
    const { id } = await platform.create(ref, { models: { main: { base_url: broken.baseUrl, name: "x", api_key: REQUEST_KEY } } });
    const failed = await ask(id);
    expect(failed).toMatchObject({ text: null, message: expect.stringContaining("Incorrect API key provided: (the key)") });
    expect(await score(id)).toMatchObject({ success: false, errorInfo: { code: "model.failed" } });
  });

  it("says which models there are, or that none is declared", async () => {
    const { id } = await platform.create(ref);
    expect(await ask(id, "What now?", "mian")).toMatchObject({ message: expect.stringContaining("no model 'mian', it has 'main'") });
  });

  it("is refused by the rules of rolloutModels, when the instance is created and when the model is called", async () => {
    const forbidden = { base_url: "http://169.254.169.254/v1", name: "x" };
    expect(await platform.ask("POST", "/env-instance", { envName: ref, models: { main: forbidden } })).toMatchObject({
      status: 400,
      message: expect.stringContaining("models.main: base_url"),
    });
    const main = { baseUrl: `${platform.controlUrl}/v1`, name: "x" };
    const own = await publish(platform, projects.advisor, { isolation: "shared", version: "1.0.1", declaredModels: { main } });
    const { id } = await platform.create(own);
    expect(await ask(id)).toMatchObject({ message: expect.stringContaining("is a port of this server itself") });
  });

  it("is not read to the end where its answer has none", async () => {
    let sent = 0;
    const endless = createServer((_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const piece = Buffer.alloc(1024 ** 2, " ");
      const more = () => {
        while (!response.destroyed && response.write(piece)) sent += piece.length;
        if (!response.destroyed) response.once("drain", more);
      };
      more();
    });
    await once(endless.listen(0, "127.0.0.1"), "listening");
    onTestFinished(() => {
      endless.closeAllConnections();
      endless.close();
    });
    const { port } = endless.address() as AddressInfo;
    const { id } = await platform.create(ref, { models: { main: { base_url: `http://127.0.0.1:${port}/v1`, name: "x" } } });
    expect(await ask(id)).toMatchObject({ message: expect.stringContaining("is not read") });
    expect(sent).toBeLessThan(128 * 1024 ** 2);
  });
});

describe("a key that came in a request", () => {
  it("is gone with the server that had it, and the call says to use a secret", async () => {
    const folder = mkdtempSync(join(tmpdir(), "aenv-models-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const flags = { poolMin: 0 };
    const first = await startServerProcess(folder, { flags }).ready;
    const own = await publish(first, projects.advisor, { isolation: "shared" });
    const models = { main: { base_url: model.baseUrl, name: "own", api_key: REQUEST_KEY } };
    const [{ id }, { id: keyless }] = [
      await first.create(own, { models }),
      await first.create(own, { models: { main: { base_url: model.baseUrl, name: "open", secret: "model-key" } } }),
    ];
    expect(await callTool(urlOf(first, id), "ask", { question: "What now?" })).toMatchObject({ text: "own knows" });
    await first.kill();
    const second = await startServerProcess(folder, { flags: { ...flags, secretsDir: join(home, "secrets") } }).ready;
    onTestFinished(() => second.stop());
    const lost = await callTool(urlOf(second, id), "ask", { question: "What now?" });
    expect(lost).toMatchObject({ text: null, message: expect.stringContaining("name a secret in models.main.secret") });
    expect(await callTool(urlOf(second, keyless), "ask", { question: "What now?" })).toMatchObject({ text: "open knows" });
  });
});
