import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

/** An image of an archive in the format of `docker save`. */
export interface ArchivedImage {
  /** The name with its tag, such as `aenv-test/one:1`. */
  readonly name: string;
  /** Files in the folder, the lowest layer first. Images may share layers. */
  readonly layers: readonly string[];
  /** The config of the image, such as `Cmd` and `Env`. */
  readonly config: object;
}

/** Writes `image.tar` from layers that are in the folder. */
export async function writeDockerArchive(folder: string, images: readonly ArchivedImage[]): Promise<void> {
  const layers = [...new Set(images.flatMap((image) => image.layers))];
  const diffIds = new Map<string, string>();
  for (const layer of layers) diffIds.set(layer, `sha256:${await digestOfFile(join(folder, layer))}`);
  const entries = [];
  for (const image of images) {
    const text = JSON.stringify({
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      os: "linux",
      config: image.config,
      rootfs: { type: "layers", diff_ids: image.layers.map((layer) => diffIds.get(layer)) },
      history: image.layers.map((layer) => ({ created_by: layer })),
    });
    const config = `${createHash("sha256").update(text).digest("hex")}.json`;
    await writeFile(join(folder, config), text);
    entries.push({ Config: config, RepoTags: [image.name], Layers: image.layers });
  }
  await writeFile(join(folder, "manifest.json"), JSON.stringify(entries));
  const files = ["manifest.json", ...entries.map((entry) => entry.Config), ...layers];
  await promisify(execFile)("tar", ["--create", "--file=image.tar", "--hard-dereference", ...files], { cwd: folder });
}

async function digestOfFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
