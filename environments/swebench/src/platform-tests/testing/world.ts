import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type ImageRegistry, pushSweImages, startImageRegistry, sweRows } from "@aenv/testing";
import { type Platform, publish, startPlatform } from "aenvironment/platform-tests";
import { prepareData } from "../../data/prepare.ts";
import { loadDataset } from "../../dataset/load.ts";

export const project = fileURLToPath(new URL("../../..", import.meta.url));

/** Tasks whose tests are run by jest, mocha and Django. */
export const runners = fileURLToPath(new URL("../fixtures/runners", import.meta.url));

/** A server with the environment, the dataset of `examples`, those tasks, and a registry with its images. */
export interface World extends AsyncDisposable {
  readonly platform: Platform;
  readonly registry: ImageRegistry;
  /** The published environment. */
  readonly ref: string;
  /** The prepared data. */
  readonly dataFolder: string;
  /** Its own, with the rows of the dataset as `rows.jsonl`. */
  readonly folder: string;
  /** Variables of commands that use the same images with the engine oci. */
  readonly variables: Readonly<Record<string, string>>;
}

export async function startWorld(flags: Readonly<Record<string, unknown>>): Promise<World> {
  await using stack = new AsyncDisposableStack();
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "aenv-swe-")));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const registry = stack.use(await startImageRegistry());
  const images = new Map([...(await pushSweImages(registry)), ...(await pushSweImages(registry, runners))]);
  const rows = [...sweRows(), ...(await loadDataset(runners)).map((row) => Object.fromEntries(row))];
  const withImages = rows.map((row) => ({ ...row, image: images.get(String(row.instance_id)) }));
  writeFileSync(join(folder, "rows.jsonl"), withImages.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const dataFolder = join(folder, "data/swe-bench");
  await prepareData({ from: join(folder, "rows.jsonl"), to: dataFolder });
  const imageStore = join(folder, "images");
  const access = { registryAuth: registry.authFile, insecureRegistries: [registry.host] };
  const platform = await startPlatform({ flags: { ...flags, ...access, dataDir: join(folder, "data"), imageStore } });
  stack.defer(() => platform.close());
  const taskSandboxes = { images: [`${registry.host}/*`], atOnce: 3, memory: "512Mi", egress: "none" };
  const ref = await publish(platform, project, { isolation: "shared", deployConfig: { taskSandboxes } });
  const variables = {
    AENV_HOME: join(folder, "home"),
    AENV_IMAGE_STORE: imageStore,
    AENV_REGISTRY_AUTH: registry.authFile,
    AENV_INSECURE_REGISTRIES: registry.host,
  };
  const kept = stack.move();
  return { platform, registry, ref, dataFolder, folder, variables, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}
