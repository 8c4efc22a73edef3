import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { defineEnvironment, type EnvironmentDefinition } from "../definition/definition.ts";
import type { LocalChild } from "../definition/local-child.ts";
import { loadEnvironment } from "../load/load.ts";
import { loadUses } from "../load/load-uses.ts";
import { type Served, type ServeOptions, serve } from "./serve.ts";

const leaf = defineEnvironment({
  setup: ({ seed, task }) => ({ count: 0, seed, task: task?.id ?? null }),
  tasks: () => [{ id: "one", instruction: "Count to one." }],
  tools: [
    { name: "count", run: (_, { state }) => ++state.count },
    { name: "slow", run: () => new Promise((resolve) => setTimeout(resolve, 30, "done")) },
    {
      name: "fail",
      run: () => {
        throw new Error("no luck");
      },
    },
  ],
  functions: [{ name: "read", run: (_, { state }) => state }],
  rewards: [{ name: "counted", score: ({ state }) => state.count }],
}) as EnvironmentDefinition;

const root = defineEnvironment({
  setup: () => ({ calls: 0 }),
  tasks: () => [{ id: "one", instruction: "Count to one." }],
  tools: [
    {
      name: "both",
      run: async (_, { children, state }) => {
        state.calls++;
        return (await Promise.all(children.list().map((child) => child.callTool("count")))).map(({ text }) => text).join(" ");
      },
    },
  ],
  functions: [
    { name: "read", run: async (_, { children }) => Promise.all(children.list().map((child) => child.callFunction("read"))) },
    { name: "fail", run: async (_, { children }) => children.get("near").callTool("fail") },
    { name: "missing", run: (_, { children }) => children.get("nobody") },
    {
      name: "inner",
      run: async (_, { children }) => {
        const near = children.get("near");
        const { task } = await near.reset({ task: "one", seed: 9 });
        return { task: task?.id, tools: (await near.tools()).map(({ name }) => name), state: await near.callFunction("read") };
      },
    },
  ],
  rewards: [{ name: "total", score: async ({ children }) => (await children.get("near").reward()).reward }],
}) as EnvironmentDefinition;

const near: LocalChild = {
  name: "near",
  task: "same",
  reexport: ["slow"],
  environment: { name: "leaf", version: "1.0.0", definition: leaf },
};

async function open(
  uses: readonly LocalChild[],
  options: ServeOptions = {},
): Promise<Served & { post(path: string, body?: object): Promise<Answer> }> {
  const served = await serve(root, { name: "root", version: "1.0.0", port: 0, uses, writeLog: () => {}, ...options });
  onTestFinished(() => served.close());
  const post = async (path: string, body: object = {}) => {
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const response = await fetch(served.url + path, { method: "POST", headers, body: JSON.stringify(body) });
    return response.json();
  };
  return Object.assign(served, { post });
}

// biome-ignore lint/suspicious/noExplicitAny: tests read answers of every shape
type Answer = any;

const call = (name: string) => ({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: {} } });

describe("children without a platform", () => {
  it("are served in the same process, with seeds and tasks of the episode of their parent", async () => {
    const { post } = await open([near, { ...near, name: "other", task: "none" }], { first: { seed: 3, task: "one" } });
    expect((await post("/mcp", call("both"))).result.content[0].text).toBe("1 1");
    const { data } = await post("/functions/read");
    expect(data).toMatchObject([
      { count: 1, task: "one" },
      { count: 1, task: null },
    ]);
    expect(data[0].seed).not.toBe(data[1].seed);
    expect((await post("/task/reward")).data).toBe(1);
  });

  it("are new in each episode, and part of snapshots and forks", async () => {
    const { post, host } = await open([near], { first: { seed: 3 } });
    await post("/mcp", call("both"));
    const { data: snapshot } = await post("/state/snapshot");
    await post("/mcp", call("both"));
    const [fork] = await host.fork("default", ["copy"]);
    expect(fork?.id).toBe("copy");
    expect((await post("/env-instance/copy/functions/read")).data).toMatchObject([{ count: 2 }]);
    await post("/state/restore", { snapshot });
    expect((await post("/functions/read")).data).toMatchObject([{ count: 1 }]);
    await post("/task/reset", { seed: 3 });
    expect((await post("/functions/read")).data).toMatchObject([{ count: 0 }]);
    expect((await post("/state/restore", { snapshot: { ...snapshot, children: { near: { seed: "x" } } } })).errorInfo).toMatchObject({
      code: "snapshot.invalid",
    });
  });

  it("answer as they would an agent: a failed tool is a result, and an unknown name says which there are", async () => {
    const { post } = await open([near]);
    expect((await post("/functions/fail")).data).toMatchObject({ isError: true, text: "no luck" });
    expect((await post("/functions/missing")).error).toContain("there is no child 'nobody'; deployConfig.uses of config.json has 'near'");
    expect((await post("/functions/inner")).data).toEqual({
      task: "one",
      tools: ["count", "slow", "fail"],
      state: { count: 0, seed: 9, task: "one" },
    });
  });

  it("are part of the digest of the state: a tree that is played again is equal, and one with another child is not", async () => {
    const digests = async (seed: number) => {
      const { post, url } = await open([near], { first: { seed } });
      const digest = async () => ((await (await fetch(`${url}/state/digest`)).json()) as { data: { digest: string } }).data.digest;
      const before = await digest();
      await post("/functions/inner");
      return [before, await digest()];
    };
    const first = await digests(3);
    expect(first[0]).not.toBe(first[1]);
    expect(await digests(3)).toEqual(first);
    expect((await digests(4))[0]).not.toBe(first[0]);
  });

  it("are listed with their versions, seeds and tasks, for the provenance of trajectories", async () => {
    const { url } = await open([{ ...near, environment: { name: "mid", version: "2.0.0", definition: root, uses: [near] } }], {
      first: { seed: 3, task: "one" },
    });
    const read = async (path: string) => ((await (await fetch(url + path)).json()) as { data: unknown }).data;
    expect(await read("/episode")).toMatchObject({ children: true });
    expect(await read("/episode/children")).toEqual([
      { path: "near", environment: "mid@2.0.0", digest: "", seed: expect.any(Number), task: "one" },
      { path: "near/near", environment: "leaf@1.0.0", digest: "", seed: expect.any(Number), task: "one" },
    ]);
  });

  it("lend their tools to the agent of their parent", async () => {
    const { post } = await open([near]);
    const { result } = await post("/mcp", { jsonrpc: "2.0", id: 1, method: "tools/list" });
    expect(result.tools.map(({ name }: { name: string }) => name)).toEqual(["both", "near__slow"]);
    expect((await post("/mcp", call("near__slow"))).result.content[0].text).toBe("done");
  });

  it("may be served elsewhere, and the loss of one is an error with its name", async () => {
    const elsewhere = await serve(leaf, { name: "leaf", version: "1.0.0", port: 0, first: null });
    const { post } = await open([{ name: "near", environment: { url: elsewhere.url } }]);
    expect((await post("/mcp", call("both"))).result.content[0].text).toBe("1");
    await elsewhere.close();
    expect((await post("/mcp", call("both"))).error).toMatchObject({
      data: { code: "sandbox.lost" },
      message: expect.stringContaining("child 'near'"),
    });
  });

  it("a snapshot waits for running calls, and later calls wait for the snapshot", async () => {
    const { post } = await open([near]);
    const running = post("/mcp", call("near__slow"));
    const snapshot = post("/state/snapshot");
    expect((await running).result.content[0].text).toBe("done");
    expect((await snapshot).data).toMatchObject({ children: { near: { snapshot: {} } } });
  });

  it("are found beside the project or where `--use` says, and one that contains itself is refused", async () => {
    const tree = temporaryTree();
    onTestFinished(() => tree[Symbol.dispose]());
    const project = async (name: string, uses: object[]) => {
      await mkdir(join(tree.path, name, "src"), { recursive: true });
      await writeFile(join(tree.path, name, "config.json"), JSON.stringify({ name, version: "1.0.0", deployConfig: { uses } }));
      await writeFile(join(tree.path, name, "src/index.js"), "export default { setup: () => ({}) };");
      return join(tree.path, name);
    };
    const a = await project("a", [{ name: "below", env: "b@^1" }]);
    await project("b", []);
    const loaded = await loadEnvironment(a);
    expect(await loadUses(loaded)).toMatchObject([{ name: "below", environment: { name: "b", uses: [] } }]);
    expect(await loadUses(loaded, { below: "http://127.0.0.1:1" })).toMatchObject([{ environment: { url: "http://127.0.0.1:1" } }]);
    await expect(loadUses(loaded, { other: a })).rejects.toMatchObject({ message: expect.stringContaining("there is no child 'other'") });
    await expect(loadUses(loaded, { below: join(tree.path, "c") })).rejects.toMatchObject({
      message: expect.stringContaining("--use below=PATH_OR_URL"),
    });
    await expect(loadUses(loaded, { below: a })).rejects.toMatchObject({ message: expect.stringContaining("a -> a") });
  });
});
