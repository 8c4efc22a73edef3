import { cpSync, mkdirSync, readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type ImageRegistry, type Tree, temporaryTree } from "@aenv/testing";
import { imagesOfTask } from "../../compose/images.ts";
import { examplesFolder } from "../../fixtures/examples.ts";
import { createRoot, removeRoot } from "../../fixtures/local-root.ts";
import { loadTask } from "../../task/load.ts";
import { writeBase } from "./base-layer.ts";
import { type Layer, layerOf, Pusher } from "./push.ts";

/** The examples as a data folder of a server, and their images in a registry. */
export interface ExampleWorld extends Disposable {
  readonly dataDir: string;
  readonly tasks: readonly string[];
  /** What is before the names of images. */
  readonly prefix: string;
}

/** What local roots have only as mounts or as folders of the machine. */
const MOUNTED = ["usr", "proc", "dev", "bin", "sbin", "lib", "lib64"];

/** Only one engine has services, so these tasks are named by those who use them. For the others, one that is refused suffices. */
const WITH_SERVICES = ["compose", "two-services", "mounts"];
const REFUSED = "compose";

export async function openExamples(registry: ImageRegistry, chosen?: readonly string[]): Promise<ExampleWorld> {
  const tree = temporaryTree();
  const folder = join(tree.path, "data/terminal-bench");
  const isNeeded = (name: string) => name === REFUSED || !WITH_SERVICES.includes(name) || chosen?.includes(name);
  for (const format of ["harbor", "terminal-bench-1"]) {
    const from = join(examplesFolder, format);
    for (const entry of readdirSync(from, { withFileTypes: true }))
      if (entry.isDirectory() && isNeeded(entry.name)) cpSync(join(from, entry.name), join(folder, entry.name), { recursive: true });
  }
  const fixtures = fileURLToPath(new URL("../fixtures/tasks", import.meta.url));
  for (const name of readdirSync(fixtures)) if (isNeeded(name)) cpSync(join(fixtures, name), join(folder, name), { recursive: true });
  const prefix = `${registry.host}/tb/`;
  const prebuilt = join(folder, "prebuilt-image/task.toml");
  writeFileSync(prebuilt, readFileSync(prebuilt, "utf8").replace('"aenv-debian"', `"${prefix}aenv-debian:1"`));
  const tasks = readdirSync(folder).filter((name) => chosen?.includes(name) ?? !WITH_SERVICES.includes(name));
  await pushImages(
    registry,
    tree,
    tasks.map((name) => join(folder, name)),
    prefix,
  );
  return { dataDir: join(tree.path, "data"), tasks, prefix, [Symbol.dispose]: () => tree[Symbol.dispose]() };
}

/** As builders make them of many Dockerfiles: with the same layer twice, and without the folder of a `WORKDIR` in which nothing was written. */
async function pushImages(registry: ImageRegistry, tree: Tree, tasks: readonly string[], prefix: string): Promise<void> {
  writeBase(join(tree.path, "base"));
  const base = layerOf(join(tree.path, "base"));
  mkdirSync(join(tree.path, "empty"));
  const empty = layerOf(join(tree.path, "empty"));
  const pusher = new Pusher(registry);
  const push = async (image: string, context: string | null, dockerfile?: string) => {
    const { layer, config } = await build(context, dockerfile);
    await pusher.push(image.slice(registry.host.length + 1), [base, layer, empty, empty], config);
  };
  await push(`${prefix}aenv-debian:1`, null);
  for (const folder of tasks) {
    for (const { image, build: source } of await imagesOfTask(await loadTask(folder), prefix)) {
      if (source !== null) await push(image, source.context, source.dockerfile.slice(source.context.length + 1));
    }
  }
}

/** Removes a folder that a `WORKDIR` has made, and nothing else has changed. */
function removeIfBare(folder: string): void {
  if (statSync(folder).uid === 0 && readdirSync(folder).length === 0) rmdirSync(folder);
}

/** The instructions of a Dockerfile, applied to a root on this machine. */
async function build(context: string | null, dockerfile?: string): Promise<{ readonly layer: Layer; readonly config: object }> {
  const root = await createRoot(context, dockerfile);
  try {
    const { env, workdir, user, entrypoint } = root;
    if (workdir !== "/") removeIfBare(join(root.path, workdir));
    const config = {
      Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
      WorkingDir: workdir,
      User: user,
      Entrypoint: entrypoint,
    };
    return { layer: layerOf(root.path, MOUNTED), config };
  } finally {
    await removeRoot(root);
  }
}
