import { availableParallelism } from "node:os";
import { join } from "node:path";
import { PlatformError } from "@aenv/contract";
import type { OpenSandboxOptions, TaskSandbox, TaskSandboxes } from "@aenv/kit";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { type ComposeTask, composeOf } from "../compose/of-task.ts";
import { examplesFolder, loadExample } from "../fixtures/examples.ts";
import { parseProgram, programOf } from "../platform/entrypoint.ts";
import { loadTask } from "../task/load.ts";
import { TrialFailure } from "../trial/failure.ts";
import type { TrialReport } from "../trial/report.ts";
import { agentFiles, agentHints } from "./agent-files.ts";
import { withCapabilities } from "./capabilities.ts";
import { terminalBench } from "./environment.ts";
import { Episode } from "./episode.ts";
import { TaskLibrary } from "./library.ts";
import { openOptions, problemsOf } from "./open-options.ts";
import { openSandbox } from "./open-sandbox.ts";
import { scoreOf } from "./score.ts";
import { readSettings } from "./settings.ts";
import { readStoredReport, storedReport } from "./stored-report.ts";

describe("settings", () => {
  it("have defaults, and find the data: a variable, the bundle, the prepared folder", () => {
    expect(readSettings({}, null)).toMatchObject({ dataPath: null, isStrict: true, imagePrefix: "", tb1Reward: "parser", taskId: null });
    const variables = { AENV_DATA_DIR: "/data" };
    expect(readSettings(variables, null).dataPath).toBe("/data/terminal-bench");
    expect(readSettings(variables, "/bundle/tasks").dataPath).toBe("/bundle/tasks");
    expect(readSettings({ ...variables, TERMINAL_BENCH_DATA_DIR: "/own" }, "/bundle/tasks").dataPath).toBe("/own");
  });

  it("choose the capabilities of sandboxes, which are those of config.json by default", () => {
    expect(readSettings({}, null).capabilities).toBeNull();
    expect(readSettings({ TERMINAL_BENCH_CAPABILITIES: "minimal" }, null).capabilities).toBe("minimal");
    expect(() => readSettings({ TERMINAL_BENCH_CAPABILITIES: "all" }, null)).toThrow("must be minimal or docker");
  });

  it("have the datasource with which an instance was created", () => {
    expect(readSettings({}, null).datasource).toBeNull();
    expect(readSettings({ AENV_DATASOURCE: "terminalbench/a" }, null).datasource).toBe("terminalbench/a");
  });

  it.each([
    [{ TERMINAL_BENCH_STRCT: "false" }, "did you mean TERMINAL_BENCH_STRICT?"],
    [{ TERMINAL_BENCH_STRICT: "no" }, "must be true or false"],
    [{ TERMINAL_BENCH_TIMEOUT_MULTIPLIER: "0" }, "must be a number above 0"],
  ])("are checked: %j", (variables, message) => {
    expect(() => readSettings(variables, null)).toThrow(message);
  });
});

describe("a task library", () => {
  it("has tasks of both formats by folder name and package name, and lists broken ones with the reason", async () => {
    const tasks = ["harbor/workdir", "terminal-bench-1/hello-world", "harbor"].map((path) => join(examplesFolder, path));
    const library = new TaskLibrary({
      metrics: [],
      name: "d",
      tasks: tasks.map((folder) => ({ name: folder, folder, digest: null })),
      missing: [],
    });
    expect((await library.get("aenv-examples/workdir")).shortName).toBe("workdir");
    await expect(library.get("workdri")).rejects.toThrow("did you mean 'workdir'?");
    expect(await library.list()).toMatchObject([
      { id: "workdir", format: "harbor", name: "aenv-examples/workdir" },
      { id: "hello-world", format: "terminal-bench-1", difficulty: "easy" },
      { id: "harbor", problem: expect.stringContaining("it is not a task") },
    ]);
  });
});

describe("a sandbox", () => {
  it("has the limits and the network of its task", () => {
    const limits = { memory_mb: null, cpus: 1_000, storage_mb: 5 };
    expect(openOptions(limits, { mode: "public", hosts: [] })).toEqual({ memoryMb: 2_048, cpus: availableParallelism(), diskMb: 5 });
    expect(openOptions({ memory_mb: 64, cpus: null }, { mode: "no-network", hosts: [] })).toEqual({ memoryMb: 64, egress: "none" });
    const some = { mode: "allowlist", hosts: ["*.example.com"] } as const;
    expect(openOptions({ memory_mb: 64, cpus: null }, some)).toEqual({ memoryMb: 64, egress: { allow: ["*.example.com"] } });
  });

  it("has no limit of its disk on an engine without one, and the log says so", async () => {
    const asked: unknown[] = [];
    const lines: string[] = [];
    const open = async ({ diskMb }: OpenSandboxOptions = {}) => {
      asked.push(diskMb);
      if (diskMb !== undefined) throw new PlatformError("sandbox.unsupported", "the disk of sandbox 'a' cannot be limited");
      return {} as TaskSandbox;
    };
    const engine = {};
    const sandboxes = { open } as TaskSandboxes;
    for (let i = 0; i < 2; i++) await openSandbox(sandboxes, { diskMb: 7 }, engine, (line) => lines.push(line));
    expect(asked).toEqual([7, undefined, undefined]);
    expect(lines).toEqual(["storage_mb = 7 is not a limit here: the disk of sandbox 'a' cannot be limited"]);
    const other = { open: () => Promise.reject(new PlatformError("sandbox.unsupported", "no network")) } as unknown as TaskSandboxes;
    await expect(openSandbox(other, { diskMb: 7 }, {})).rejects.toThrow("no network");
  });

  it("has the capabilities of the settings, and a refusal of them names the setting", async () => {
    const asked: OpenSandboxOptions[] = [];
    const given = { open: async (options = {}) => asked.push(options) } as unknown as TaskSandboxes;
    await withCapabilities(given, null).open({ image: "a" });
    await withCapabilities(given, "minimal").open({ image: "a" });
    expect(asked).toEqual([{ image: "a" }, { image: "a", capabilities: "minimal" }]);
    const refusing = (code: "instance.unsupported" | "quota.exceeded", message: string) => ({
      ...given,
      open: () => Promise.reject(new PlatformError(code, message)),
    });
    const refusal = refusing("instance.unsupported", "it needs more (deployConfig.taskSandboxes.capabilities), and cannot");
    await expect(withCapabilities(refusal, null).open()).rejects.toMatchObject({
      code: "instance.unsupported",
      message: expect.stringMatching(/and cannot; TERMINAL_BENCH_CAPABILITIES=minimal plays/),
    });
    await expect(withCapabilities(refusing("quota.exceeded", "too many"), null).open()).rejects.toThrow(/^too many$/);
  });

  it("is refused for tasks that the platform cannot run, with the reason", async () => {
    expect(problemsOf(await loadExample("harbor/compose"), true)).toEqual([]);
    const phases = await loadExample("harbor/network-phases");
    expect([problemsOf(phases, true), problemsOf(phases, false)]).toEqual([[], []]);
    const compose = await loadExample("harbor/compose");
    const { config } = compose;
    const offline = { ...config, verifier: { ...config.verifier, network_mode: "no-network" as const } };
    expect([problemsOf({ ...compose, config: offline }, true), problemsOf({ ...compose, config: offline }, false)]).toEqual([
      [],
      [expect.stringContaining("its services cannot get it")],
    ]);
  });

  it("runs the entry point and the command of the last stage of a Dockerfile", () => {
    expect(parseProgram('FROM a\nENTRYPOINT ["/a"]\nCMD ["b"]\nFROM b\n')).toEqual({ entrypoint: [], command: [] });
    expect(parseProgram('FROM a\nENTRYPOINT ["/a", "-x"]\nCMD ["b"]\n')).toEqual({ entrypoint: ["/a", "-x"], command: ["b"] });
    expect(parseProgram("FROM a\nENTRYPOINT exec a b\n").entrypoint).toEqual(["/bin/sh", "-c", "exec a b"]);
  });

  it.each([
    [
      "its compose file's command, after the entry point of its Dockerfile",
      "{build: ., command: serve --all}",
      ["/start", "serve", "--all"],
    ],
    ["its compose file's entry point, without the Dockerfile's command", "{build: ., entrypoint: [own]}", ["own", "sleep", "infinity"]],
    ["the program of its Dockerfile", "{build: .}", ["/start", "listen"]],
  ])("of Terminal-Bench 1 runs %s", async (_, service, expected) => {
    using tree = temporaryTree({
      "task.yaml": "instruction: Go\n",
      "run-tests.sh": "",
      "docker-compose.yaml": `services:\n  client: ${service}\n`,
      Dockerfile: 'FROM x\nENTRYPOINT ["/start"]\nCMD ["listen"]\n',
    });
    const task = await loadTask(tree.path);
    expect(await programOf(task, composeOf(task as ComposeTask, null))).toEqual(expected);
  });

  it("gives the agent the headers of an MCP server with the values of its variables", async () => {
    const task = await loadExample("harbor/fresh-verifier");
    const headersWith = (host: Readonly<Record<string, string>>) =>
      JSON.parse(agentFiles(task, host)[0]?.[1] ?? "{}").mcpServers.notes.headers;
    expect(headersWith({ NOTES_TOKEN: "t-1" })).toEqual({ "X-Team": "examples", Authorization: "Bearer t-1" });
    expect(headersWith({})).toEqual({ "X-Team": "examples", Authorization: "Bearer " });
  });

  it("has a file with the MCP servers of its task, which the prompt names", async () => {
    const task = await loadExample("harbor/skills-and-mcp");
    const [[path, text] = ["", "{}"]] = agentFiles(task, {});
    expect([path, Object.keys(JSON.parse(text).mcpServers)]).toEqual(["/harbor/mcp.json", ["notes", "remote"]]);
    expect(agentHints(task).join(" ")).toMatch(/\/opt\/skills.*\/harbor\/mcp.json/);
    expect(agentFiles(await loadExample("harbor/workdir"), {})).toEqual([]);
  });
});

describe("a score", () => {
  const step = { name: null, agentExecution: null, verifierExecution: null, manifest: [], failure: null };
  const report = (rewards: Record<string, number> | null, failure: Error | null = null): TrialReport => ({
    environmentSetup: null,
    steps: [{ ...step, verification: null, failure }],
    rewards,
    integers: [],
    failure: null,
  });

  it("has the fields of the original", async () => {
    const task = await loadExample("harbor/workdir");
    expect(scoreOf(task, "workdir", report({ reward: 0.5, other: 1 }), "log")).toEqual({
      reward: 0.5,
      rewards: { reward: 0.5, other: 1 },
      task_name: "workdir",
      status: "success",
      score: 0.5,
      raw_output: "log",
    });
  });

  it("is the first of several rewards without the key reward, beside all of them", async () => {
    const task = await loadExample("harbor/workdir");
    expect(scoreOf(task, "t", report({ accuracy: 0.75, speed: 2 }), "")).toMatchObject({
      reward: 0.75,
      score: 0.75,
      rewards: { accuracy: 0.75, speed: 2 },
    });
  });

  it("is an error if there is none, and a failure of the platform keeps its code", async () => {
    const task = await loadExample("harbor/workdir");
    expect(() => scoreOf(task, "t", report(null), "")).toThrow("gave no reward");
    expect(() => scoreOf(task, "t", report({}), "")).toThrow("gave no reward");
    const lost = Object.assign(new Error("gone"), { code: "sandbox.lost" });
    expect(() => scoreOf(task, "t", report(null, new Error("tests", { cause: lost })), "")).toThrow(lost);
  });

  it("is 0 with the reason if the agent has caused the failure", async () => {
    const task = await loadExample("harbor/workdir");
    const slow = new TrialFailure("VerifierTimeoutError", "too slow");
    expect(scoreOf(task, "t", report(null, slow), "log")).toMatchObject({ reward: 0, score: 0, status: "timeout", error: "too slow" });
    const changed = new TrialFailure("TestsTamperedError", "changed");
    expect(scoreOf(task, "t", report(null, changed), "")).toMatchObject({ reward: 0, status: "error", error: "changed" });
    const steps = await loadExample("harbor/steps-mean");
    const verification = { rewards: { reward: 1 }, integers: [], isTampered: false, tb1: null };
    const half = {
      ...report({ reward: 1 }),
      steps: [
        { ...step, verification },
        { ...step, verification: null, failure: slow },
      ],
    };
    expect(scoreOf(steps, "t", half, "")).toMatchObject({ reward: 0.5, status: "timeout" });
  });

  it("is stored with its report", () => {
    const stored = JSON.stringify(storedReport(report({ reward: 1 }, new Error("slow"))));
    expect(readStoredReport(stored)).toMatchObject({ rewards: { reward: 1 }, steps: [{ failure: { message: "slow" } }] });
  });
});

it("a copy of an episode has its end, its failures and what is left of its time", async () => {
  const task = await loadExample("harbor/steps-mean");
  const failure = { type: "VerifierTimeoutError", message: "too slow" };
  const collected = { name: "collect", agentExecution: null, verifierExecution: null, verification: null, failure, manifest: [] };
  const record = { taskId: "steps-mean", reports: [collected], setup: null, end: "stopped", stepElapsedMs: 10_000 } as const;
  const context = { sandbox: {} as TaskSandbox, sandboxes: {} as TaskSandboxes };
  const copy = await Episode.restore(task, readSettings({}, null), {}, record);
  try {
    expect(copy.trial.isOver).toBe(true);
    expect(copy.record()).toMatchObject({ reports: [{ failure }], end: "stopped" });
    expect(copy.trial.remainingMs()).toBeLessThanOrEqual((copy.trial.plan.agent.timeoutSec ?? 0) * 1_000 - 10_000);
    expect(scoreOf(task, "steps-mean", await copy.verify(context), "")).toMatchObject({ reward: 0, status: "timeout" });
  } finally {
    await copy.close();
  }
});

it("a task whose steps have different networks is refused before the agent begins, if the engine cannot change them", async () => {
  const task = await loadExample("harbor/steps-network");
  const asked: unknown[] = [];
  const result = { exitCode: 0, stdout: "", stderr: "", timedOut: false, interruption: null };
  const sandbox = {
    exec: async () => result,
    files: { write: async () => {}, stat: () => Promise.reject(new PlatformError("file.not_found", "no such file")) },
    setEgress: async (policy: unknown) => {
      asked.push(policy);
      throw new PlatformError("sandbox.unsupported", "the engine 'still' sets them at its start");
    },
    close: async () => {},
  } as unknown as TaskSandbox;
  const sandboxes = { open: async () => sandbox } as unknown as TaskSandboxes;
  await expect(Episode.open(task, readSettings({}, null), {}, { sandbox, sandboxes })).rejects.toThrow(
    "'steps-network' cannot be played: its network policy changes, and the engine 'still' sets them at its start",
  );
  expect(asked).toEqual([null]);
});

it("an environment without data loads, and says how to prepare it", async () => {
  const { tasks } = terminalBench({ tasksFolder: null, variables: {} });
  await expect(tasks?.()).rejects.toThrow("aenv bench data terminal-bench --from DIR");
});
