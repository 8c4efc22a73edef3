import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { describeNeeding } from "@aenv/testing";
import { afterAll, describe, expect, it } from "vitest";
import { examplesFolder, loadExample, localSandboxes, localSettings } from "../fixtures/examples.ts";
import { loadTask } from "../task/load.ts";
import { scalarReward } from "../verifier/rewards.ts";
import type { TrialSandbox } from "./sandbox.ts";
import { placeSolution } from "./solution.ts";
import { Trial } from "./trial.ts";

const folder = mkdtempSync(join(tmpdir(), "trials-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const harbor = (await readdir(join(examplesFolder, "harbor"), { withFileTypes: true })).filter((entry) => entry.isDirectory());
const examples = [
  ...harbor.map(({ name }) => `harbor/${name}`).filter((path) => path !== "harbor/compose"),
  ...["hello-world", "environment", "typed-commands"].map((name) => `terminal-bench-1/${name}`),
];

type Agent = (sandbox: TrialSandbox, trial: Trial) => Promise<unknown>;

const idle: Agent = async () => {};

const oracle: Agent = async (sandbox, { task, plan, options }) => {
  const { command, env } = await placeSolution(sandbox, task, plan, {});
  await sandbox.exec(command, { ...options, env: { ...options.env, ...env }, user: plan.agent.user });
};

/** An agent that runs one command as root. */
function command(text: string): Agent {
  return (sandbox) => sandbox.exec(text, { user: "root" });
}

let trials = 0;
async function play(path: string, agent = oracle, settings = localSettings) {
  const task = await (isAbsolute(path) ? loadTask(path) : loadExample(path));
  const trial = new Trial(task, join(folder, `trial-${++trials}`), settings);
  const sandboxes = localSandboxes(task);
  await trial.open(sandboxes);
  try {
    do await agent(sandboxes.agent, trial);
    while ((await trial.endStep(sandboxes)) !== null);
    return { ...(await trial.verify(sandboxes)), trial };
  } finally {
    await trial.close();
    await sandboxes.agent.stop();
  }
}

describeNeeding("tmpfs", "trials in local roots", () => {
  it.each(examples)("give the oracle 1 and an idle agent 0: %s", { timeout: 60_000 }, async (path) => {
    const reports = await Promise.all([play(path), play(path, idle)]);
    for (const report of reports) {
      expect([report.failure, ...report.steps.map(({ failure }) => failure)].filter((failure) => failure !== null)).toEqual([]);
    }
    expect(reports.map(({ rewards }) => scalarReward(rewards))).toEqual([1, 0]);
  });

  it("collect artifacts with a manifest before the verification", async () => {
    const { trial } = await play("harbor/artifacts");
    const manifest = JSON.parse(readFileSync(join(trial.folder, "artifacts/manifest.json"), "utf8"));
    expect(manifest).toEqual([
      { source: "/logs/artifacts", destination: "artifacts/logs/artifacts", type: "directory", status: "ok", service: null, exclude: [] },
      { source: "/app/report.txt", destination: "artifacts/app/report.txt", type: "file", status: "ok", service: null, exclude: [] },
      { source: "/app/data", destination: "artifacts/tables", type: "directory", status: "ok", service: null, exclude: ["*.tmp"] },
    ]);
    expect(readFileSync(join(trial.folder, "artifacts/logs/artifacts/status.txt"), "utf8")).toBe("done\n");
    expect(await readdir(join(trial.folder, "artifacts/tables"))).toEqual(["table.csv"]);
  });

  it("give a separate verifier programs, links, empty folders and large files of the agent", { timeout: 60_000 }, async () => {
    const path = join(import.meta.dirname, "../platform-tests/fixtures/tasks/artifact-tree");
    expect(scalarReward((await play(path)).rewards)).toBe(1);
    const replaced = command("mkdir -p /app/out; echo 1 > /app/out/large; ln -s large /app/out/run");
    expect(scalarReward((await play(path, replaced)).rewards)).toBe(0);
    const endless = command(`mkdir -p /app/out && perl -e 'open(F, ">", "/app/out/large"); truncate(F, 2**42)'`);
    expect(scalarReward((await play(path, endless)).rewards)).toBe(0);
  });

  it("put the files of steps into folders of their own", async () => {
    const { trial, steps } = await play("harbor/steps-mean");
    expect(steps.map(({ name, verification }) => [name, verification?.rewards])).toEqual([
      ["collect", { reward: 1 }],
      ["combine", { reward: 1 }],
    ]);
    expect(readFileSync(join(trial.folder, "steps/collect/artifacts/app/first.txt"), "utf8")).toBe("one\n");
    expect(await readdir(trial.folder)).toEqual(["steps"]);
  });

  it("stop after a step whose reward is below its threshold", async () => {
    expect((await play("harbor/steps-mean", idle)).steps.map(({ name }) => name)).toEqual(["collect"]);
  });

  describe("do not believe what the agent planted", () => {
    const cheats: readonly (readonly [string, string])[] = [
      ["a reward file", "echo '{\"reward\": 1}' > /logs/verifier/reward.json"],
      ["a reward file that cannot be removed by its user", "mkdir -p /logs/verifier/reward.json && touch /logs/verifier/reward.json/x"],
      [
        "a link instead of the tests",
        "rm -rf /tests; ln -s /app /tests; mkdir -p /app; echo 'echo 1 > /logs/verifier/reward.txt' > /app/test.sh",
      ],
      ["a link instead of the logs", "rm -rf /logs; mkdir /elsewhere; ln -s /elsewhere /logs"],
      ["a pipe in place of the reward", "rm -rf /logs/verifier; mkfifo /logs/verifier"],
      ["a helper beside the tests", "mkdir -p /tests; echo 'echo 1 > /logs/verifier/reward.txt; exit' > /tests/helper.sh"],
    ];
    it.each(cheats)("%s", async (_, text) => {
      const report = await play("harbor/hello-file", command(text));
      expect(report.failure).toBeNull();
      expect(report.rewards).toEqual({ reward: 0 });
    });
  });

  it("verify the work of an agent that ran out of time", async () => {
    let lateMs = 0;
    const clock = { ...localSettings.clock, now: () => Date.now() + lateMs };
    const slow: Agent = async (sandbox, trial) => {
      const { isTimedOut } = await sandbox.exec("echo hello > greeting.txt; sleep 600", { timeoutMs: 500 });
      expect(isTimedOut).toBe(true);
      expect(trial.remainingMs()).toBeGreaterThan(0);
      lateMs = 60_000;
      expect(trial.remainingMs()).toBe(0);
    };
    expect((await play("harbor/hello-file", slow, { ...localSettings, clock })).rewards).toEqual({ reward: 1 });
  });

  it.each([
    ["that was killed", "kill -9 $$", "TestsKilledError"],
    ["that could start no process, but not because of the sandbox's limit", "exit 254", "RewardFileNotFoundError"],
  ])("name the failure of a test script %s", async (_, script, type) => {
    const copy = join(folder, `task-${++trials}`);
    cpSync(join(examplesFolder, "harbor/hello-file"), copy, { recursive: true });
    writeFileSync(join(copy, "tests/test.sh"), script);
    const report = await play(copy, idle);
    expect([report.rewards, report.steps.at(-1)?.failure ?? report.failure]).toMatchObject([null, { type }]);
  });
});
