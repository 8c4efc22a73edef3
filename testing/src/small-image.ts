import { execFile, execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { writeDockerArchive } from "./docker-archive.ts";
import type { ImageRegistry } from "./registry.ts";
import { temporaryTree } from "./tree.ts";

const run = promisify(execFile);

const COMMANDS = ["sh", "cat", "ls", "echo", "sleep", "env", "rm", "touch", "mkdir", "id", "head", "yes", "pwd", "tar", "chmod", "setsid"];

export interface SmallImage {
  /** The name in the registry, such as `team/tasks:one`. */
  readonly name: string;
  /** Files by their paths, in addition to a few programs. */
  readonly files?: Readonly<Record<string, string>>;
  /** The config of the image, such as `WorkingDir` and `User`. */
  readonly config?: object;
}

/** Writes an image with a shell and a few programs of this machine as an archive of `docker save`, and returns its path. */
export async function writeSmallImage(folder: string, { files = {}, config = {} }: Omit<SmallImage, "name">): Promise<string> {
  await writeSmallRoot(folder, "root.tar", files);
  const whole = { Env: ["PATH=/usr/bin:/bin"], WorkingDir: "/", ...config };
  await writeDockerArchive(folder, [{ name: "aenv-test/small:latest", layers: ["root.tar"], config: whole }]);
  return join(folder, "image.tar");
}

/**
 * Pushes an image with a shell and a few programs of this machine to a registry, in about a second and without a network. Returns its
 * full name. Needs skopeo.
 */
export async function pushSmallImage(registry: ImageRegistry, { name, ...content }: SmallImage): Promise<string> {
  using tree = temporaryTree();
  const archive = await writeSmallImage(tree.path, content);
  const full = `${registry.host}/${name}`;
  const access = ["--dest-tls-verify=false", `--dest-creds=${registry.username}:${registry.password}`];
  await run("skopeo", ["copy", "--quiet", ...access, `docker-archive:${archive}`, `docker://${full}`]);
  return full;
}

/** The credentials of a registry, as `docker login` writes them. */
export function dockerAuth({ host, username, password }: ImageRegistry): string {
  return JSON.stringify({ auths: { [host]: { auth: Buffer.from(`${username}:${password}`).toString("base64") } } });
}

/**
 * Writes a tar archive to the folder with a shell, a few programs of this machine and these others, and the libraries of all. Returns
 * the path of a folder with the same files.
 */
export async function writeSmallRoot(
  folder: string,
  archive: string,
  files: Readonly<Record<string, string>> = {},
  programs: readonly string[] = [],
): Promise<string> {
  const root = join(folder, `${archive}.root`);
  writeRoot(root, files, programs);
  const options = ["--sort=name", "--mtime=@0", "--mode=a+rX", "--owner=0", "--group=0", "--numeric-owner"];
  await run("tar", ["--create", `--file=${archive}`, ...options, "-C", root, "."], { cwd: folder });
  return root;
}

function writeRoot(root: string, files: Readonly<Record<string, string>>, programs: readonly string[]): void {
  const copy = (from: string, to: string) => {
    mkdirSync(dirname(join(root, to)), { recursive: true });
    if (!existsSync(join(root, to))) copyFileSync(from, join(root, to));
  };
  for (const folder of ["tmp", "root", "etc", "home/app"]) mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, "etc/passwd"), "root:x:0:0::/root:/bin/sh\napp:x:1000:1000::/home/app:/bin/sh\n");
  writeFileSync(join(root, "etc/group"), "root:x:0:\napp:x:1000:\n");
  for (const command of [...COMMANDS, ...programs]) {
    const path = realpathSync(execFileSync("which", [command], { encoding: "utf8" }).trim());
    copy(path, `usr/bin/${command}`);
    if (command === "sh") copy(path, "bin/sh");
    for (const library of librariesOf(path)) copy(library, library);
  }
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

function librariesOf(path: string): string[] {
  const listed = execFileSync("ldd", [path], { encoding: "utf8" });
  return [...listed.matchAll(/(\/\S+) \(0x/g)].map(([, library]) => library as string);
}
