import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, copyFile, cp, link, mkdir, mkdtemp, readdir, rename, rm, stat, symlink, utimes } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { writeDockerArchive } from "./docker-archive.ts";
import { debianRoot, digestOf, imageCache } from "./images.ts";
import { type LockedPackages, packageClosure } from "./package-closure.ts";
import { writeSmallRoot } from "./small-image.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);
const PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** An archive has half a gigabyte, and every change of the sources makes a new one. */
const KEPT_MS = 60 * 60_000;
const PACKAGE = "usr/local/lib/node_modules/aenvironment";

/** The images that a cluster needs to run the platform, and an archive with all of them in the format of `docker save`. */
export interface PlatformImages {
  readonly archive: string;
  /** Names with tags, which change with the content. */
  readonly server: string;
  readonly base: string;
  readonly redis: string;
}

/**
 * The images of the server, of sandboxes and of Redis, as `deploy/images` describes them: on a Debian root, with the package of this
 * checkout. They are built once for these sources, in about half a minute, and kept in the user's cache folder. The caller must not
 * change them. For suites that need `mmdebstrap` and `redis`.
 */
export async function platformImages(): Promise<PlatformImages> {
  const debian = await debianRoot();
  const key = digestOf([debian, ...sources().flatMap((file) => [relative(root, file), readFileSync(file)])]);
  const names = { server: `aenv.local/server:${key}`, base: `aenv.local/base:${key}`, redis: `aenv.local/redis:${key}` };
  const archive = join(imageCache, `platform-${key}.tar`);
  if (existsSync(archive)) {
    await utimes(archive, new Date(), new Date());
    return { archive, ...names };
  }
  const folder = await mkdtemp(join(imageCache, ".part-"));
  try {
    await link(debian, join(folder, "debian.tar"));
    await writePackage(join(folder, "server", PACKAGE));
    await writeServerLayer(folder);
    await writeBaseLayer(folder);
    await writeSmallRoot(folder, "redis.tar", {}, ["redis-server", "redis-cli", "chown"]);
    const server = { Cmd: ["aenv", "server"], Env: [PATH, "HOME=/var/lib/aenv", "AENV_HOME=/var/lib/aenv"], User: "65532:65532" };
    await writeDockerArchive(folder, [
      { name: names.server, layers: ["debian.tar", "server.tar"], config: { ...server, WorkingDir: "/var/lib/aenv" } },
      { name: names.base, layers: ["debian.tar", "base.tar"], config: { Cmd: ["/opt/aenv/node", "/opt/aenv/runner.js"], Env: [PATH] } },
      { name: names.redis, layers: ["redis.tar"], config: { Cmd: ["redis-server"], Env: [PATH] } },
    ]);
    await rename(join(folder, "image.tar"), archive);
    await removeOld(archive);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return { archive, ...names };
}

/** Removes the archives of earlier sources that no test can be using any more. */
async function removeOld(newest: string): Promise<void> {
  for (const name of await readdir(imageCache)) {
    const file = join(imageCache, name);
    if (!/^platform-\w+\.tar(\.lock)?$/.test(name) || file === newest) continue;
    const { mtimeMs } = await stat(file);
    if (Date.now() - mtimeMs > KEPT_MS) await rm(file, { force: true });
  }
}

/** Builds the package of this checkout into a folder as `npm install --global` lays it out, with the versions of the lock file. */
export async function writePackage(folder: string): Promise<void> {
  await run(process.execPath, [join(root, "packages/aenv/scripts/build.ts"), folder], { cwd: root });
  const { dependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { dependencies: object };
  const locked = JSON.parse(readFileSync(join(root, "node_modules/.package-lock.json"), "utf8")) as { packages: LockedPackages };
  for (const path of packageClosure(Object.keys(dependencies), locked.packages)) {
    // What a package has installed below itself is in the list too, if it is needed.
    const filter = (file: string) => !relative(join(root, path), file).split("/").includes("node_modules");
    await cp(join(root, path), join(folder, path), { recursive: true, filter });
  }
}

/** What the Dockerfile of the server does. */
async function writeServerLayer(folder: string): Promise<void> {
  const layer = join(folder, "server");
  await mkdir(join(layer, "usr/local/bin"));
  await symlink("../lib/node_modules/aenvironment/bin/aenv.js", join(layer, "usr/local/bin/aenv"));
  await mkdir(join(layer, "var/lib/aenv"), { recursive: true });
  await chmod(join(layer, "var/lib/aenv"), 0o777);
  await writeLayer(folder, "server");
}

/** What the Dockerfile of the base image adds. */
async function writeBaseLayer(folder: string): Promise<void> {
  const target = join(folder, "base/opt/aenv");
  await mkdir(target, { recursive: true });
  await copyFile(join(folder, "server", PACKAGE, "lib/runner.js"), join(target, "runner.js"));
  await copyFile(join(folder, "server", PACKAGE, `init/init-${process.arch}`), join(target, "init"));
  await chmod(join(target, "init"), 0o755);
  await symlink("/usr/local/bin/node", join(target, "node"));
  await writeLayer(folder, "base");
}

async function writeLayer(folder: string, name: string): Promise<void> {
  const options = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--mode=a+rX"];
  await run("tar", ["--create", `--file=${name}.tar`, ...options, "-C", name, "."], { cwd: folder });
}

/** The files that the images are made of. */
function sources(): string[] {
  const folders = ["packages", "environments"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name)),
  );
  const isSource = (file: string) => !/\/(node_modules|dist|\.venv)\/|\.test\.ts$/.test(file);
  return [...folders.filter(isSource).sort(), join(root, "package-lock.json"), fileURLToPath(import.meta.url)];
}
