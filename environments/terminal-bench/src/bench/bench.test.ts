import { chmodSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { parseTrajectory } from "../atif/trajectory.ts";
import { packageContent } from "../checksum/package-hash.ts";
import { readDatasetFacts } from "../data/dataset-file.ts";
import { prepareData } from "../data/index.ts";
import { examplesFolder } from "../fixtures/examples.ts";
import { readJob } from "../results/job-folder.ts";
import type { FinishedEpisode } from "./episode.ts";
import { imageSources, imagesOf, results } from "./index.ts";
import { openMetrics } from "./metrics.ts";

const run = { id: "run-1", agent: "openai", model: "acme/large", startedAt: new Date("2026-01-02T03:04:05Z") };
const call = { id: "call-1", type: "function" as const, function: { name: "bash", arguments: '{"command":"ls"}' } };
const messages: FinishedEpisode["trajectory"]["messages"] = [
  { role: "system", content: "You work." },
  { role: "user", content: "Do it." },
  { role: "assistant", content: null, tool_calls: [call] },
  { role: "tool", content: "a.txt", tool_call_id: "call-1" },
  { role: "assistant", content: "Done." },
];
const turn = { prompt_tokens: 10, completion_tokens: 2, cached_tokens: null };
const episode: FinishedEpisode = {
  taskId: "workdir",
  sample: 0,
  outcome: { kind: "scored", reward: 1 },
  artifacts: new Map([
    ["verifier/reward.txt", Buffer.from("1\n")],
    [
      "trial.json",
      Buffer.from(
        JSON.stringify({
          environmentSetup: { startedAt: 0, finishedAt: 1 },
          steps: [
            {
              name: null,
              agentExecution: null,
              verifierExecution: null,
              verification: { rewards: { reward: 1 }, integers: [] },
              failure: null,
            },
          ],
          rewards: { reward: 1 },
          integers: ["reward"],
          failure: null,
        }),
      ),
    ],
  ]),
  trajectory: {
    id: "episode-1",
    messages,
    steps: [],
    turns: [
      { ...turn, message: 2 },
      { ...turn, message: 4 },
    ],
    usage: { prompt_tokens: 20, completion_tokens: 4, cached_tokens: 0 },
    cost: null,
    timing: { started_at: "2026-01-02T03:04:06Z", total_ms: 1_000 },
  },
};

it("data of every format becomes one folder of tasks, and a prepared one is data again", async () => {
  using tree = temporaryTree();
  const harbor = join(examplesFolder, "harbor");
  const sources = [harbor, join(harbor, "dataset.toml"), join(examplesFolder, "terminal-bench-1"), join(harbor, "hello-file")];
  const tasks: string[] = [];
  for (const [i, from] of sources.entries()) {
    const { facts } = await prepareData({ from, to: join(tree.path, String(i)) });
    tasks.push(new Map(facts).get("tasks") ?? "");
  }
  expect(tasks).toEqual(["16", "16", "4", "1"]);
  const [dataset] = JSON.parse(readFileSync(join(harbor, "registry.json"), "utf8"));
  const chosen = [`${dataset.name}@${dataset.version}`];
  const { facts } = await prepareData({ from: join(harbor, "registry.json"), to: join(tree.path, "registry"), domains: chosen });
  expect(new Map(facts).get("dataset")).toBe(dataset.name);
  const compose = join(tree.path, "0/compose/environment/docker-compose.yaml");
  writeFileSync(compose, `${readFileSync(compose, "utf8")}    tmpfs: /tmp\n`);
  const again = await prepareData({ from: join(tree.path, "0"), to: join(tree.path, "again") });
  expect(again.warnings).toEqual(["compose: volumes.requests.tmpfs is not supported"]);
  await expect(prepareData({ from: tree.path, to: join(tree.path, "none") })).rejects.toThrow("has no tasks");
  await expect(prepareData({ from: join(tree.path, "0"), to: join(tree.path, "none"), isStrict: true })).rejects.toThrow("compose");
  expect(readdirSync(tree.path)).not.toContain("none");
});

it("images are named by the content that they are built from, with those of verifiers", async () => {
  const harbor = join(examplesFolder, "harbor");
  const images = await imagesOf(harbor, ["workdir", "separate-verifier", "prebuilt-image", "compose"]);
  expect(images.get("workdir")).toEqual([expect.stringMatching(/^hb__workdir:[0-9a-f]{16}$/)]);
  expect(images.get("separate-verifier")).toEqual([
    expect.stringMatching(/^hb__separate-verifier:/),
    expect.stringMatching(/^hb__separate-verifier--verifier:/),
  ]);
  expect(images.get("prebuilt-image")).toEqual(["aenv-debian"]);
  expect(images.get("compose")).toEqual([expect.stringMatching(/^hb__compose--answers:/), expect.stringMatching(/^hb__compose:/)]);
  const elsewhere = await imagesOf(harbor, ["workdir"], "oci", { TERMINAL_BENCH_IMAGES: "registry.example.com/team/" });
  expect(elsewhere.get("workdir")).toEqual([`registry.example.com/team/${images.get("workdir")?.[0]}`]);
  // Only one engine runs it.
  expect((await imagesOf(harbor, ["compose"], "oci")).get("compose")).toEqual([]);
  const sources = await imageSources(harbor, ["workdir", "prebuilt-image"]);
  expect(sources).toMatchObject([{ image: images.get("workdir")?.[0], dockerfile: join(harbor, "workdir/environment/Dockerfile") }]);
});

it("results are a job's folder of Harbor, the same if an episode is written again", async () => {
  using tree = temporaryTree();
  const options = {
    dataFolder: join(examplesFolder, "harbor"),
    folder: join(tree.path, "job"),
    run,
    taskIds: ["workdir"],
    samples: 2,
    concurrency: 3,
  };
  const failed: FinishedEpisode = {
    ...episode,
    sample: 1,
    artifacts: new Map(),
    outcome: { kind: "unscored", cause: "sandbox", stage: "start", message: "no memory" },
  };
  for (let i = 0; i < 2; i++) {
    const writer = await results(options);
    await writer.episode(episode);
    await writer.episode(failed);
    expect((await writer.end()).summary).toContainEqual(["trials", "2 of 2"]);
  }
  const lock = JSON.parse(readFileSync(join(options.folder, "lock.json"), "utf8"));
  const { hash } = await packageContent(join(examplesFolder, "harbor/workdir"));
  expect(lock).toMatchObject({ schema_version: 3, created_at: run.startedAt.toISOString(), n_concurrent_trials: 3 });
  expect(lock.trials).toMatchObject(Array(2).fill({ task: { type: "local", digest: `sha256:${hash}` }, agent: { name: "openai" } }));
  expect(lock.trials[0].agent).not.toHaveProperty("import_path");
  const { result, trials, unfinished } = await readJob(options.folder);
  expect([trials.length, unfinished]).toEqual([2, []]);
  expect(result?.stats).toMatchObject({ n_completed_trials: 2, n_errored_trials: 1, n_pending_trials: 0, n_input_tokens: 40 });
  const scored = trials.find((trial) => trial.result.exception_info === null);
  expect(scored?.result).toMatchObject({ task_name: "aenv-examples/workdir", verifier_result: { rewards: { reward: 1 } } });
  expect(readFileSync(join(scored?.folder ?? "", "verifier/reward.txt"), "utf8")).toBe("1\n");
  const atif = parseTrajectory(JSON.parse(readFileSync(join(scored?.folder ?? "", "agent/trajectory.json"), "utf8")));
  expect(atif.steps.map(({ source, observation }) => [source, observation?.results[0]?.content ?? null])).toEqual([
    ["system", null],
    ["user", null],
    ["agent", "a.txt"],
    ["agent", null],
  ]);
});

it("results of tasks of Terminal-Bench 1 are also in its own files", async () => {
  using tree = temporaryTree();
  const folder = join(tree.path, "job");
  const options = {
    dataFolder: join(examplesFolder, "terminal-bench-1"),
    folder,
    run,
    taskIds: ["hello-world"],
    samples: 2,
    concurrency: 1,
  };
  const log = "=== short test summary info ===\nPASSED tests/test_a.py::test_a\n";
  const writer = await results(options);
  await writer.episode({
    ...episode,
    taskId: "hello-world",
    artifacts: new Map([...episode.artifacts, ["verifier/test-stdout.txt", Buffer.from(log)]]),
  });
  const outcome = { kind: "unscored", cause: "sandbox", stage: "start", message: "no memory" } as const;
  await writer.episode({ ...episode, taskId: "hello-world", sample: 1, artifacts: new Map(), outcome });
  const own = join(folder, "terminal-bench-1/run-1");
  expect((await writer.end()).summary).toContainEqual(["files of Terminal-Bench 1", own]);
  const read = (path: string) => JSON.parse(readFileSync(join(own, path), "utf8"));
  expect(read("hello-world/hello-world.1-of-2.run-1/results.json")).toMatchObject({
    task_id: "hello-world",
    is_resolved: true,
    failure_mode: "unset",
    parser_results: { test_a: "passed" },
    total_input_tokens: 20,
  });
  expect(read("results.json")).toMatchObject({
    n_resolved: 1,
    n_unresolved: 1,
    accuracy: 0.5,
    pass_at_k: { 2: 1 },
    results: [{}, { is_resolved: null, failure_mode: "unknown_agent_error", parser_results: null }],
  });
  expect(read("run_metadata.json")).toMatchObject({
    run_id: "run-1",
    agent_name: "openai",
    n_attempts: 2,
    accuracy: 0.5,
    model_name: "acme/large",
  });
});

it("scripts of a dataset compute metrics if they are allowed, and say why they do not", async () => {
  using tree = temporaryTree({
    uv: '#!/bin/sh\n[ "$1" = --version ] && exit\ncat "$4" > "$2.seen"\necho "$(cat "$2")" > "$6"\n',
    "metric.py": '{"lines": 3}',
    "bad.py": "[]",
  });
  const uv = join(tree.path, "uv");
  chmodSync(uv, 0o755);
  const scripts = ["metric.py", "bad.py"].map((name) => ({ type: "uv-script", script: join(tree.path, name) }) as const);
  const metrics = await openMetrics([{ type: "max" }, ...scripts], "true", uv);
  expect(metrics.types).toEqual(["max"]);
  expect(await metrics.compute([{ reward: 1 }, null])).toEqual({
    computed: [{ lines: 3 }],
    failures: [expect.stringContaining("bad.py: its answer is not a JSON object")],
  });
  expect(readFileSync(join(tree.path, "metric.py.seen"), "utf8")).toBe('{"reward":1}\nnull\n');
  const refused = await openMetrics(scripts.slice(0, 1), undefined, uv);
  expect((await refused.compute([])).failures).toEqual([expect.stringContaining("TERMINAL_BENCH_METRIC_SCRIPTS=true")]);
  await expect(openMetrics(scripts, "true", "/nowhere/uv")).rejects.toThrow("/nowhere/uv runs; install it");
  expect((await openMetrics([], undefined)).types).toEqual(["mean"]);
});

it("the metrics of a registry are prepared with their scripts", async () => {
  const metrics = [{ type: "min" }, { type: "uv-script", kwargs: { script_path: "m.py" } }];
  const registry = [{ name: "d", version: "1", description: "", tasks: [{ name: "t", path: "t" }], metrics }];
  using tree = temporaryTree({ "t/task.toml": "", "registry.json": JSON.stringify(registry), "m.py": "content" });
  const to = join(tree.path, "to");
  await prepareData({ from: join(tree.path, "registry.json"), to });
  expect(await readDatasetFacts(to)).toEqual({
    name: "d",
    metrics: [{ type: "min" }, { type: "uv-script", script: join(to, "metric-2.py") }],
  });
  expect(readFileSync(join(to, "metric-2.py"), "utf8")).toBe("content");
});
