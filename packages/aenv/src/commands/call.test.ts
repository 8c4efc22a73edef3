import { defineEnvironment, type Served, serve } from "@aenv/kit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { aenv } from "../testing/cli.ts";

const environment = defineEnvironment({
  setup: () => ({ total: 0 }),
  tools: [
    {
      name: "add",
      description: "Adds.",
      input: z.object({ n: z.number(), note: z.string().optional() }),
      run: ({ n }, { state }) => (state.total += n),
    },
    { name: "echo", input: z.looseObject({}), run: (input) => input },
    { name: "fail", run: () => Promise.reject(new Error("no luck")) },
    { name: "draw", run: () => ({ content: [{ type: "image", data: "AAAA", mimeType: "image/png" }] }) },
  ],
  functions: [
    { name: "total", run: (_, { state }) => state.total },
    { name: "broken", run: () => Promise.reject(new Error("no luck")) },
  ],
  rewards: [
    {
      name: "reached",
      input: z.object({ goal: z.number().default(0) }),
      score: ({ state, input }) => (state.total === input.goal ? 1 : 0),
    },
  ],
  tasks: () => [
    { id: "1", instruction: "Reach one.", split: "train" },
    { id: "two", instruction: "Reach two.", split: "test" },
  ],
  health: ({ state }) => ({ status: state.total < 1_000 ? "healthy" : "tired" }),
});

let served: Served;
beforeAll(async () => {
  served = await serve(environment, { name: "counter", port: 0 });
});
afterAll(() => served.close());

const call = (...argv: string[]) => aenv(["call", ...argv], { env: { DUMMY_INSTANCE_IP: served.url } });

describe("call", () => {
  it("calls a tool with values that are JSON or text", async () => {
    const { code, stdout } = await call("echo", "n=3", "b=true", "list=[1,2]", "text=red tea", 'quoted="3"', "empty=", "a=b=c");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ n: 3, b: true, list: [1, 2], text: "red tea", quoted: "3", empty: "", a: "b=c" });
  });

  it("overrides --args with key=value", async () => {
    const { stdout } = await call("echo", "b=2", "--args", '{"a":1,"b":1}');
    expect(JSON.parse(stdout)).toEqual({ a: 1, b: 2 });
  });

  it("keeps state between calls, in the given instance", async () => {
    await served.host.create({ id: "second" });
    await call("add", "n=3", "--instance", "second");
    expect((await call("--function", "total", "--instance", "second")).stdout).toBe("3\n");
    expect((await call("--function", "total")).stdout).toBe("0\n");
  });

  it("exits with 1 and prints the tool's error when the tool fails", async () => {
    const { code, stdout, stderr } = await call("fail");
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain("no luck");
    const wrong = await call("add", "n=three");
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toContain("n");
  });

  it("prints the whole answer as JSON, and nothing else, with --json", async () => {
    const good = await call("add", "n=0", "--json");
    expect({ ...good, stdout: JSON.parse(good.stdout) }).toMatchObject({ code: 0, stdout: { isError: false }, stderr: "" });
    const bad = await call("fail", "--json");
    expect({ ...bad, stdout: JSON.parse(bad.stdout) }).toMatchObject({ code: 1, stdout: { isError: true }, stderr: "" });
  });

  it("prints the type and size of an answer that is not text", async () => {
    expect((await call("draw")).stdout).toContain("[image image/png, 3 bytes]");
  });

  it("calls functions, rewards and health", async () => {
    expect((await call("--function", "total", "--json")).stdout).toBe("0\n");
    expect((await call("-f", "broken")).code).toBe(1);
    expect((await call("--reward", "goal=0")).stdout).toBe("1\n");
    expect(JSON.parse((await call("--health", "--json")).stdout)).toMatchObject({ data: { status: "healthy" } });
  });

  it("exits with 1 when the environment is not healthy", async () => {
    await served.host.create({ id: "tired" });
    await call("add", "n=5000", "--instance", "tired");
    const { code, stdout } = await call("--health", "--instance", "tired");
    expect(code).toBe(1);
    expect(stdout).toContain("tired");
  });

  it("lists tools, functions and rewards", async () => {
    const { stdout } = await call("--list");
    expect(stdout).toMatch(/tool +│ add +│ n: number, note\?: string/);
    expect(stdout).toMatch(/reward +│ reached +│ goal: number = 0/);
    const { tools, functions, rewards } = JSON.parse((await call("--list", "--json")).stdout);
    expect([tools.length, functions.length, rewards.length]).toEqual([4, 2, 1]);
  });

  it("lists all tasks, or those of one split", async () => {
    expect((await call("--tasks")).stdout).toMatch(/1 +│ train +│ Reach one\.[\s\S]*two +│ test +│ Reach two\./);
    expect(JSON.parse((await call("--tasks", "split=test", "--json")).stdout)).toMatchObject([{ id: "two" }]);
    expect((await call("--tasks", "split=none")).stdout).toBe("No tasks.\n");
  });

  it("starts an episode and prints its task, seed and observation", async () => {
    await served.host.create({ id: "third" });
    const { code, stdout } = await call("--reset", "task=1", "seed=7", "--instance", "third");
    expect(code).toBe(0);
    expect(stdout).toMatch(/Task +1\n +Seed +7\n +Observation\n +Reach one\./);
    const begun = JSON.parse((await call("--reset", "task=two", "--instance", "third", "--json")).stdout);
    expect(begun).toMatchObject({ task: { id: "two" }, seed: 7, observation: "Reach two." });
    const missing = await call("--reset", "task=three", "--instance", "third");
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining("aenv call --tasks")]);
  });

  it("prints the state as JSON", async () => {
    await served.host.create({ id: "fourth" });
    await call("add", "n=3", "--instance", "fourth");
    const { code, stdout } = await call("--snapshot", "--instance", "fourth");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ environment: "counter@0.1.0", data: expect.stringContaining("total") });
  });

  it("suggests the nearest argument name", async () => {
    const { code, stderr } = await call("--reset", "tsk=1");
    expect([code, stderr]).toEqual([2, expect.stringContaining("Did you mean task?")]);
  });

  it("exits with 2 for an invalid command line", async () => {
    for (const argv of [
      [],
      ["n=3"],
      ["add", "n"],
      ["add", "--args", "[1]"],
      ["-f", "-r"],
      ["add", "--timeout", "soon"],
      ["--snapshot", "x=1"],
      ["--reset", "seed=x"],
    ]) {
      expect((await call(...argv)).code, argv.join(" ")).toBe(2);
    }
  });

  it("names the unknown tool, the nearest that there is, and how to list the tools", async () => {
    const { code, stderr } = await call("nothing");
    expect(code).toBe(1);
    expect(stderr).toContain("nothing");
    expect(stderr).toContain("aenv call --list");
    expect((await call("addd", "n=1")).stderr).toMatch(/no tool 'addd'.*\n→ Did you mean add\? List all with: aenv call --list/);
  });

  it("exits with 69 when the address cannot be reached", async () => {
    for (const argv of [["add", "n=1"], ["-f", "total"], ["-r"], ["--health"], ["--list"]]) {
      const { code, stderr } = await aenv(["call", ...argv, "--url", "http://127.0.0.1:1"]);
      expect(code, argv.join(" ")).toBe(69);
      expect(stderr).toContain("aenv run");
    }
  });
});
