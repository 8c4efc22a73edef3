import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { copyFile, link, mkdir, mkdtemp, rename, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { ImageRegistry } from "./registry.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const script = join(root, "deploy/images/debian-root");
const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "aenv/images");

/** The dataset in the style of SWE-bench: a task repository, its rows in `rows.jsonl`, and predictions. */
export const sweExamples = join(root, "environments/swebench/examples");

const PACKAGES = ["git", "patch", "python3-pytest"];
const CONFIG = {
  Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1"],
  WorkingDir: "/testbed",
};
/** The image without a repository. */
const BASE = "base";
const LAYER = "application/vnd.oci.image.layer.v1.tar+gzip";

/**
 * A folder with an OCI layout that has the image of each task of a task repository, named by `layoutName`. It is built once, in a minute or
 * two, and kept in the user's cache folder. The caller must not change it. Needs `mmdebstrap`.
 */
export async function sweImages(dataset = sweExamples): Promise<string> {
  const base = await benchmarkRoot();
  const tasks = readdirSync(join(dataset, "tasks"))
    .sort()
    .map((id) => ({ id, folder: resolve(dataset, "tasks", id) }));
  const contents = tasks.flatMap(({ folder }) => [readFileSync(historyOf(folder)), ...packagesOf(folder)]);
  const layout = join(
    cache,
    `swe-${digestOf([base, JSON.stringify(CONFIG), BASE, ...tasks.map(({ id }) => layoutName(id)), ...contents])}`,
  );
  if (existsSync(layout)) return layout;
  const folder = await mkdtemp(join(cache, ".part-"));
  try {
    await mkdir(join(folder, "layout/blobs/sha256"), { recursive: true });
    const write = new LayoutWriter(join(folder, "layout"));
    const lowest = await write.layer(base);
    await write.image(BASE, [lowest]);
    for (const task of tasks) {
      const archives = [...(await packageLayers(folder, task)), await repositoryLayer(folder, task)];
      const layers = [];
      for (const archive of archives) layers.push(await write.layer(archive));
      await write.image(layoutName(task.id), [lowest, ...layers]);
    }
    await write.end();
    // Another test file may have been faster.
    await rename(join(folder, "layout"), layout).catch((error) => {
      if (!existsSync(layout)) throw error;
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return layout;
}

/** Copies the images to a registry, in seconds. Returns their full names by the ids of the tasks. Needs `skopeo` too. */
export async function pushSweImages(registry: ImageRegistry, dataset = sweExamples): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  const layout = await sweImages(dataset);
  for (const id of readdirSync(join(dataset, "tasks")).sort()) {
    const name = layoutName(id);
    names.set(id, await push(registry, `${layout}:${name}`, `swebench/sweb.eval.x86_64.${name}:latest`));
  }
  return names;
}

/** Copies the image that the others are based on to a registry: a base for the Dockerfiles of the tasks that needs no network. */
export async function pushSweBase(registry: ImageRegistry): Promise<string> {
  return push(registry, `${await sweImages()}:${BASE}`, "swebench/base:latest");
}

async function push(registry: ImageRegistry, from: string, to: string): Promise<string> {
  const name = `${registry.host}/${to}`;
  const access = ["--authfile", registry.authFile, "--dest-tls-verify=false"];
  await run("skopeo", ["copy", "--quiet", ...access, `oci:${from}`, `docker://${name}`]);
  return name;
}

/** The rows of `sweExamples`. */
export function sweRows(): Record<string, unknown>[] {
  const rows = readFileSync(join(sweExamples, "rows.jsonl"), "utf8").trimEnd().split("\n");
  return rows.map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** A compressed archive of a Debian root with Git, Python, pytest and Node: the lowest layer of images of benchmarks. */
export async function benchmarkRoot(): Promise<string> {
  const key = digestOf([readFileSync(script), ...PACKAGES, process.version, process.arch]);
  const archive = join(cache, `benchmark-${key}.tar.gz`);
  if (existsSync(archive)) return archive;
  await mkdir(cache, { recursive: true });
  const env = { ...process.env, PATH: [dirname(process.execPath), process.env.PATH].join(delimiter) };
  // Other test files wait for the first one that builds it. Fast rather than small: it is unpacked again soon.
  const command =
    'out=$1; script=$2; shift 2; [ -e "$out" ] || { "$script" "$out.tar" "$@" && gzip -1nc "$out.tar" >"$out.part" && rm "$out.tar" && mv "$out.part" "$out"; }';
  await run("flock", [`${archive}.lock`, "bash", "-c", command, "bash", archive, script, ...PACKAGES], { env, timeout: 10 * 60_000 });
  return archive;
}

/** The repository of a task as `/testbed`, as its Dockerfile makes it. Equal histories give equal archives. */
async function repositoryLayer(folder: string, { id, folder: task }: Task): Promise<string> {
  const repository = join(folder, id, "testbed");
  await mkdir(repository, { recursive: true });
  const env = { PATH: process.env.PATH ?? "", GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null", HOME: folder };
  const steps = [
    "git init --quiet --initial-branch=main --template= .",
    // The log of references has the time of today.
    "git -c core.logAllRefUpdates=false fast-import --quiet --done < $1",
    "git -c core.logAllRefUpdates=false reset --quiet --hard main",
    // An index without the times and numbers of files on this machine.
    "rm .git/index && git read-tree HEAD",
  ];
  await run("sh", ["-c", steps.join(" && "), "sh", historyOf(task)], { cwd: repository, env });
  return layerOf(join(folder, id));
}

/** What a task needs beside the base: packages of npm in the repository's folder, and of pip among those of Debian's Python. */
interface Packages {
  readonly npm?: readonly string[];
  readonly pip?: readonly string[];
}

async function packageLayers(folder: string, { id, folder: task }: Task): Promise<string[]> {
  const [text] = packagesOf(task);
  if (text === undefined) return [];
  const { npm = [], pip = [] } = JSON.parse(text.toString("utf8")) as Packages;
  const files = join(folder, `${id}-packages`);
  const modules = join(files, "testbed");
  await mkdir(modules, { recursive: true });
  const options = ["--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--no-package-lock", "--prefix", modules];
  if (npm.length > 0) await run("npm", ["install", ...options, ...npm], { cwd: modules });
  // All of them are named, and none needs a compiler.
  const target = join(files, "usr/lib/python3/dist-packages");
  const only = ["--quiet", "--no-deps", "--only-binary", ":all:", "--python-version", "3.11", "--target", target];
  if (pip.length > 0) await run(join(root, "interop/uv.sh"), ["pip", "install", ...only, ...pip]);
  return [await layerOf(files)];
}

function packagesOf(task: string): Buffer[] {
  const path = join(task, "packages.json");
  return existsSync(path) ? [readFileSync(path)] : [];
}

/** The content of a folder as a compressed archive beside it. */
async function layerOf(folder: string): Promise<string> {
  const options = ["--sort=name", "--mtime=@1704067200", "--mode=u=rwX,go=rX", "--owner=0", "--group=0", "--numeric-owner"];
  const archive = `${folder}.tar.gz`;
  const command = 'set -o pipefail; out=$1; shift; tar "$@" | gzip -1n > "$out"';
  await run("bash", ["-c", command, "bash", archive, "-c", ...options, ...readdirSync(folder).sort()], { cwd: folder });
  return archive;
}

/** Names of images may not have two underscores in a row. */
function layoutName(id: string): string {
  return id.replaceAll("__", "_1776_");
}

interface Task {
  readonly id: string;
  readonly folder: string;
}

function historyOf(task: string): string {
  return join(task, "repository.fi");
}

interface Blob {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

interface Layer {
  readonly blob: Blob;
  readonly diffId: string;
}

class LayoutWriter {
  readonly #folder: string;
  readonly #manifests: object[] = [];

  constructor(folder: string) {
    this.#folder = folder;
  }

  async layer(archive: string): Promise<Layer> {
    const digest = `sha256:${await firstWord(`sha256sum < "$1"`, archive)}`;
    const diffId = `sha256:${await firstWord(`gzip -dc "$1" | sha256sum`, archive)}`;
    const { size } = await stat(archive);
    await link(archive, this.#pathOf(digest)).catch(() => copyFile(archive, this.#pathOf(digest)));
    return { blob: { mediaType: LAYER, digest, size }, diffId };
  }

  async image(name: string, layers: readonly Layer[]): Promise<void> {
    const config = await this.#json("application/vnd.oci.image.config.v1+json", {
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      os: "linux",
      config: CONFIG,
      rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
    });
    const mediaType = "application/vnd.oci.image.manifest.v1+json";
    const manifest = await this.#json(mediaType, { schemaVersion: 2, mediaType, config, layers: layers.map(({ blob }) => blob) });
    this.#manifests.push({ ...manifest, annotations: { "org.opencontainers.image.ref.name": name } });
  }

  async end(): Promise<void> {
    await writeFile(join(this.#folder, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
    await writeFile(join(this.#folder, "index.json"), JSON.stringify({ schemaVersion: 2, manifests: this.#manifests }));
  }

  async #json(mediaType: string, value: object): Promise<Blob> {
    const bytes = Buffer.from(JSON.stringify(value));
    const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
    await writeFile(this.#pathOf(digest), bytes);
    return { mediaType, digest, size: bytes.length };
  }

  #pathOf(digest: string): string {
    return join(this.#folder, "blobs/sha256", digest.slice("sha256:".length));
  }
}

async function firstWord(command: string, argument: string): Promise<string> {
  const { stdout } = await run("bash", ["-c", `set -o pipefail; ${command}`, "bash", argument]);
  return stdout.split(" ")[0] ?? "";
}

function digestOf(parts: readonly (string | Buffer)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(`${part.length}\n`).update(part);
  return hash.digest("hex").slice(0, 16);
}
