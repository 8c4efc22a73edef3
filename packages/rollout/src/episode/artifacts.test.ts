import { defineEnvironment, type Served, serve } from "@aenv/kit";
import { Environment } from "@aenv/sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { noopAgent } from "../agents/scripted.ts";
import type { EpisodeInstance } from "../player/instance.ts";
import { type Artifacts, readArtifacts } from "./artifacts.ts";
import { playEpisode } from "./play.ts";

const text = (...paths: string[]) => ({ files: Object.fromEntries(paths.map((path) => [path, { text: path }])) });

describe("the files of an episode", () => {
  it("are read from text and base64", () => {
    const files = readArtifacts({ files: { "logs/a.txt": { text: "ä" }, "b.bin": { base64: "AP8=" } } });
    expect([...files].map(([path, bytes]) => [path, [...bytes]])).toEqual([
      ["logs/a.txt", [0xc3, 0xa4]],
      ["b.bin", [0, 255]],
    ]);
  });

  it.each([
    [text("/etc/passwd"), "must be relative"],
    [text("../x"), "must be relative"],
    [text("a/../../x"), "must be relative"],
    [text("a//b"), "must be relative"],
    [text(""), "must be relative"],
    [text("a\\b"), "backslash"],
    [text("a\0b"), "control character"],
    [text("x".repeat(201)), "longer than 200 bytes"],
    [text("a", "a/b"), "'a' is a file and the folder of 'a/b'"],
    [text(...Array.from({ length: 1_001 }, (_, at) => `f${at}`)), "1001 files"],
    [{ files: { a: { text: "x".repeat(5 << 20) }, b: { text: "x".repeat(4 << 20) } } }, "9437184 bytes, and 8388608 are allowed"],
    [{ files: { a: { base64: "?" } } }, "the answer is not"],
    [{ files: { a: "text" } }, "the answer is not"],
    [null, "the answer is not"],
  ])("are refused if they could leave their folder or fill the disk: %#", (answer, problem) => {
    expect(() => readArtifacts(answer)).toThrow(problem);
  });
});

describe("an episode", () => {
  let sandbox: Served;
  const environment = defineEnvironment({
    setup: ({ seed }) => ({ seed: seed ?? 0 }),
    rewards: [
      {
        name: "one",
        score: ({ state }) => {
          if (state.seed === 3) throw new Error("no score");
          return 1;
        },
      },
    ],
    functions: [
      {
        name: "episode_artifacts",
        run: (_, { state }) => {
          if (state.seed === 2) throw new Error("no disk");
          return { files: { "log.txt": { text: `seed ${state.seed}` } } };
        },
      },
    ],
  });
  beforeAll(async () => {
    sandbox = await serve(environment, { name: "logs", version: "1.0.0", port: 0 });
  });
  afterAll(() => sandbox.close());

  async function play(seed: number, wants = true) {
    const kept: Artifacts[] = [];
    const trajectory = await playEpisode(
      { id: "e", run: null, attempt: 0, task: { id: null, split: null, index: null }, group: null, seed, metadata: {} },
      {
        agent: noopAgent(),
        recorder: null,
        model: null,
        limits: {},
        deadlineMs: 30_000,
        recordsDigests: false,
        acquire: async () => {
          const instance: EpisodeInstance = await Environment.create("logs@1.0.0", { instanceUrl: sandbox.url });
          const provenance = { environment: "logs@1.0.0", environment_digest: null, engine: null, isolation: null, server_version: null };
          return { instance, provenance, release: () => instance.release() };
        },
        provenance: { model: null, client_version: "0" },
        costOf: () => null,
        ...(wants && { onArtifacts: async (_, files) => void kept.push(files) }),
        cancel: new AbortController().signal,
        now: () => performance.now(),
        date: () => new Date(),
      },
    );
    return { trajectory, kept: kept.map((files) => [...files].map(([path, bytes]) => [path, Buffer.from(bytes).toString()])) };
  }

  it("gives the files that the environment returns after the score", async () => {
    const { trajectory, kept } = await play(1);
    expect(kept).toEqual([[["log.txt", "seed 1"]]]);
    expect(trajectory.metadata).toEqual({});
    expect((await play(1, false)).kept).toEqual([]);
  });

  it("keeps its score if the files cannot be had, and says why", async () => {
    const { trajectory, kept } = await play(2);
    expect(trajectory).toMatchObject({
      outcome: { kind: "scored", reward: 1 },
      metadata: { artifacts_error: expect.stringContaining("no disk") },
    });
    expect(kept).toEqual([[]]);
  });

  it("gives the files also if its score failed", async () => {
    const { trajectory, kept } = await play(3);
    expect(trajectory.outcome).toMatchObject({ kind: "unscored", stage: "score" });
    expect(kept).toEqual([[["log.txt", "seed 3"]]]);
  });
});
