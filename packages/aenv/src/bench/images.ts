import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "@aenv/contract";
import type { BenchModule, ImageSource } from "@aenv/kit";
import type { ImageStore } from "@aenv/sandbox";
import { type EngineName, engines } from "@aenv/sandbox/engines";
import { readServerConfig } from "@aenv/server";
import { buildImage, chooseBuilder, saveImage, writeLayout } from "../image/build-image.ts";
import { fileSource } from "../image/source.ts";
import { engineSettings } from "../rollout/engine-settings.ts";
import { withSpinner } from "../terminal/spinner.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** An image that tasks need. */
export interface NeededImage {
  readonly image: string;
  readonly tasks: readonly string[];
  readonly isPresent: boolean;
  /** How it is built; null if it can only be pulled or loaded. */
  readonly source: ImageSource | null;
}

/** The store of the engine that a command with this engine uses, with the settings of its variables. */
export async function openStore(engine: EngineName, terminal: Terminal): Promise<ImageStore> {
  const store = engines[engine].openImages?.(readServerConfig(engineSettings(engine, terminal.env)), { variables: terminal.env });
  if (store === undefined) throw new Error(`the engine ${engine} stores no images`);
  return store;
}

export interface ListedTasks {
  readonly module: BenchModule;
  readonly dataFolder: string;
  /** All if not given. */
  readonly taskIds: readonly string[] | undefined;
  readonly engine: EngineName;
  /** Variables of the instances in which they are played. */
  readonly variables?: Readonly<Record<string, string>>;
}

/** The images of tasks by name, and whether the engine has them. */
export async function listImages(
  { module, dataFolder, taskIds, engine, variables }: ListedTasks,
  store: ImageStore,
): Promise<NeededImage[]> {
  const byTask = (await module.imagesOf?.(dataFolder, taskIds, engine, variables)) ?? new Map<string, readonly string[]>();
  const tasks = new Map<string, string[]>();
  for (const [task, images] of byTask) for (const image of images) tasks.set(image, [...(tasks.get(image) ?? []), task]);
  const sources = new Map(
    ((await module.imageSources?.(dataFolder, taskIds, engine, variables)) ?? []).map((source) => [source.image, source]),
  );
  const found = [...tasks].sort(([one], [other]) => (one < other ? -1 : 1));
  return Promise.all(
    found.map(async ([image, of]) => ({ image, tasks: of, isPresent: await store.has(image), source: sources.get(image) ?? null })),
  );
}

/** A reason for each image that could not be had. */
export type Missing = ReadonlyMap<string, string>;

const AT_ONCE = 3;

/** Pulls images, a few at a time. */
export async function pullImages(images: readonly string[], store: ImageStore, terminal: Terminal): Promise<Missing> {
  const signal = terminal.stopSignal();
  const missing = new Map<string, string>();
  const left = [...images];
  const work = async () => {
    for (let image = left.shift(); image !== undefined; image = left.shift()) {
      signal.throwIfAborted();
      const name = image;
      await store.pull(name, signal).catch((error: unknown) => missing.set(name, messageOf(error)));
    }
  };
  await withSpinner(terminal, `Pulling ${images.length} images`, () => Promise.all(Array.from({ length: AT_ONCE }, work)));
  return missing;
}

/** Builds images one after the other. An engine with images of its own gets them from the builder. */
export async function buildImages(sources: readonly ImageSource[], store: ImageStore, terminal: Terminal): Promise<Missing> {
  const missing = new Map<string, string>();
  for (const source of sources) {
    try {
      await buildOne(source, store, terminal);
    } catch (error) {
      if (terminal.stopSignal().aborted) throw error;
      missing.set(source.image, messageOf(error));
    }
  }
  return missing;
}

async function buildOne(source: ImageSource, store: ImageStore, terminal: Terminal): Promise<void> {
  const { image, context, dockerfile = join(context, "Dockerfile"), buildArgs = {}, platform } = source;
  const plan = {
    references: [image],
    registry: null,
    dockerfile,
    context,
    platforms: platform === undefined ? [] : [platform],
    buildArgs,
    isPushed: false,
  };
  const builder = await chooseBuilder(undefined, plan, terminal);
  const { id } = await buildImage({ plan, dockerfile, context, settings: {}, builder }, terminal);
  const inStorage = builder === "buildah" || builder === "podman";
  if (inStorage && id !== null && store.receive !== undefined)
    return store.receive(image, (layout) => writeLayout(image, id, layout, terminal), terminal.stopSignal());
  if (await store.has(image)) return;
  const folder = mkdtempSync(join(tmpdir(), "aenv-image-"));
  try {
    const archive = join(folder, "image.tar");
    await saveImage(builder, image, archive, terminal);
    await store.load(image, `docker-archive:${archive}`, terminal.stopSignal());
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Loads `IMAGE=PATH[:NAME]`: an archive of `docker save`, or a folder with an OCI layout; `NAME` selects one of several images in it. */
export async function loadImage(pair: readonly [image: string, path: string], store: ImageStore, terminal: Terminal): Promise<void> {
  const [image, path] = pair;
  const { source } = fileSource(path, terminal.cwd);
  await withSpinner(terminal, `Loading ${image}`, () => store.load(image, source, terminal.stopSignal()));
}
