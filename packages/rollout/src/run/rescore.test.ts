import { fileURLToPath } from "node:url";
import type { Trajectory } from "@aenv/contract";
import { loadEnvironment, serve } from "@aenv/kit";
import { Environment } from "@aenv/sdk";
import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { oracleAgent } from "../agents/scripted.ts";
import { type Lease, playEpisode } from "../episode/play.ts";
import { playOptionsOf, runSettingsOf } from "../fixtures/run.ts";
import { Concurrency } from "./concurrency.ts";
import { RunFolder } from "./folder.ts";
import { rescoreRun } from "./rescore.ts";
import { playRun } from "./run.ts";

it("a run that is rescored has cost what it had, also if it takes more than one attempt", async () => {
  using tree = temporaryTree();
  const { name, version, definition } = await loadEnvironment(fileURLToPath(new URL("../../../../environments/echo", import.meta.url)));
  const sandbox = await serve(definition, { name, version, port: 0 });
  const cancel = new AbortController().signal;
  const acquire = async (): Promise<Lease & { instance: Environment }> => {
    const instance = await Environment.create("echo@1.0.0", { instanceUrl: sandbox.url });
    const provenance = { environment: "echo@1.0.0", environment_digest: null, engine: null, isolation: null, server_version: null };
    return { instance, provenance, release: () => instance.release() };
  };
  const agent = oracleAgent();
  const options = playOptionsOf(agent, { acquire }, { costOf: () => 0.5 });
  const settings = runSettingsOf("echo@1.0.0", agent, { tasks: [{ id: "greet" }], samples: 1 });
  const common = { settings, concurrency: new Concurrency({ max: 1 }), cancel };
  const from = new RunFolder(tree.path, "played");
  await playRun({ ...common, folder: from, retries: 0, play: (spec) => playEpisode(spec, options) });

  let starts = 0;
  const flaky = async () => {
    if (++starts === 1) throw new Error("the sandbox is gone");
    return acquire();
  };
  const folder = new RunFolder(tree.path, "rescored");
  const now = () => performance.now();
  const { summary } = await rescoreRun({ ...common, from, folder, retries: 1, deadlineMs: 30_000, acquire: flaky, configDigest: "", now });
  await sandbox.close();
  expect(summary).toMatchObject({ scored: 1, cost: { total: 0.5 } });
  const found: Trajectory[] = [];
  for await (const one of folder.trajectories()) found.push(one);
  expect(found).toMatchObject([{ attempt: 1, outcome: { kind: "scored", reward: 1 } }]);
});
