import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Environment } from "@aenv/sdk";
import { gradePatch, loadDataset, makeSpec, patchOf, readPredictions } from "@aenv/swebench/core";
import { describeNeeding, type ImageRegistry, pushSweImages, startDocker, startImageRegistry, sweExamples } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Platform, projects, publish, startPlatform } from "../platform.ts";
import { evalSandboxOf } from "./sandbox.ts";

const expected: Record<string, Record<string, string>> = JSON.parse(readFileSync(join(sweExamples, "predictions/expected.json"), "utf8"));
const predictionsOf = (kind: string) =>
  readPredictions(readFileSync(join(sweExamples, "predictions", `${kind}.jsonl`), "utf8"), "jsonl").map((prediction) => ({
    id: prediction.instanceId,
    patch: patchOf(prediction),
  }));

interface Graders extends AsyncDisposable {
  /** The result of a patch in a new sandbox of the task's image. */
  grade(id: string, patch: string | null): Promise<string>;
}

async function openGraders(flags: object, images: ReadonlyMap<string, string>): Promise<Graders> {
  const platform: Platform = await startPlatform({ flags: { ...flags, poolMin: 0, poolMax: 1 } });
  const deployConfig = { taskSandboxes: { images: ["*"], memory: "512Mi" } };
  const ref = await publish(platform, projects.repair, { isolation: "shared", deployConfig });
  const rows = await loadDataset(sweExamples);
  const grade: Graders["grade"] = async (id, patch) => {
    if (patch === null || patch === "") return "empty";
    const row = rows.find((one) => one.get("instance_id") === id) ?? new Map();
    const variables = { IMAGE: images.get(id) ?? "" };
    const env = await Environment.create(ref, {
      controlUrl: platform.controlUrl,
      dataUrl: platform.dataUrl,
      environmentVariables: variables,
    });
    try {
      const { grade: result, error } = await gradePatch({ sandbox: evalSandboxOf(env), spec: makeSpec(row), patch, timeoutSeconds: 120 });
      expect(result === null).toBe(error !== null);
      expect(result?.report.resolved ?? false).toBe(result?.resolution === "RESOLVED_FULL");
      return result?.resolution ?? "error";
    } finally {
      await env.release();
    }
  };
  return { grade, [Symbol.asyncDispose]: () => platform.close() };
}

async function resultsOf(graders: Graders, kind: string, only?: string) {
  const chosen = predictionsOf(kind).filter(({ id }) => only === undefined || id === only);
  return Object.fromEntries(await Promise.all(chosen.map(async ({ id, patch }) => [id, await graders.grade(id, patch)])));
}

describeNeeding("mmdebstrap", "predictions for the example dataset, graded in sandboxes", () =>
  describeNeeding("docker-registry", "with images of a registry", () => {
    let registry: ImageRegistry;
    let images: ReadonlyMap<string, string>;
    beforeAll(async () => {
      registry = await startImageRegistry();
      images = await pushSweImages(registry);
    }, 15 * 60_000);
    afterAll(() => registry?.[Symbol.asyncDispose](), 60_000);

    describeNeeding("runc", "of the engine oci", () => {
      let graders: Graders;
      beforeAll(async () => {
        graders = await openGraders({ engine: "oci", ...access(registry) }, images);
      }, 180_000);
      afterAll(() => graders?.[Symbol.asyncDispose](), 60_000);

      it.each(Object.keys(expected))("have the expected results: %s", { timeout: 180_000 }, async (kind) => {
        expect(await resultsOf(graders, kind)).toEqual(expected[kind]);
      });
    });

    describeNeeding("docker", "of the engine docker", () => {
      it("have the expected results", { timeout: 300_000 }, async () => {
        await using daemon = await startDocker();
        await using graders = await openGraders({ engine: "docker", dockerSocket: daemon.socket, ...access(registry) }, images);
        expect(await resultsOf(graders, "gold")).toEqual(expected.gold);
        for (const kind of ["partial", "malformed"]) {
          expect(await resultsOf(graders, kind, "aenv__ledger-4")).toEqual({ "aenv__ledger-4": expected[kind]?.["aenv__ledger-4"] });
        }
      });
    });
  }),
);

function access({ host, authFile }: ImageRegistry): object {
  return { registryAuth: authFile, insecureRegistries: [host] };
}
