import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { copyFile, link, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { pythonPath } from "./components.ts";
import { writeDockerArchive } from "./docker-archive.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const script = join(root, "deploy/images/debian-root");
const requirements = join(root, "interop/python/requirements.txt");
const environment = join(root, "interop/python/twin.py");
/** Images that tests have built, by digests of their content. */
export const imageCache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "aenv/images");
const run = promisify(execFile);

/** The port of the server in `originalSdkImage`. */
export const ORIGINAL_SDK_PORT = 8081;

/**
 * A tar archive of a Debian root with Node, Python and the original Python SDK. It is built once, in about a minute (a test waits ten
 * at most), and kept in the user's cache folder. For suites that need `mmdebstrap`.
 */
export async function debianRoot(): Promise<string> {
  const key = digestOf([readFileSync(script), readFileSync(requirements), process.version, process.arch]);
  const archive = join(imageCache, `debian-${key}.tar`);
  if (existsSync(archive)) return archive;
  await mkdir(imageCache, { recursive: true });
  // This Node, and a Python with pip: that of the interop tests, if it is there.
  const env = { ...process.env, PATH: [dirname(process.execPath), dirname(pythonPath), process.env.PATH].join(delimiter) };
  // Other test files wait for the first one that builds it.
  const command = '[ -e "$3" ] || "$1" --requirements "$2" "$3" python3';
  await run("flock", [`${archive}.lock`, "sh", "-c", command, "sh", script, requirements, archive], { env, timeout: 10 * 60_000 });
  return archive;
}

/**
 * An image in the format of `docker save`, in which the original Python SDK serves the environment of interop/python/twin.py on
 * ORIGINAL_SDK_PORT. For `docker load`, and as `docker-archive:PATH` for oci sandboxes. The caller must not change or delete it.
 */
export async function originalSdkImage(): Promise<string> {
  const base = await debianRoot();
  const archive = join(imageCache, `original-sdk-${digestOf([base, readFileSync(environment)])}.tar`);
  if (existsSync(archive)) return archive;
  const folder = await mkdtemp(join(imageCache, ".part-"));
  try {
    await mkdir(join(folder, "app"));
    await copyFile(environment, join(folder, "app/twin.py"));
    await run("tar", ["--create", "--file=app.tar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "app"], { cwd: folder });
    await link(base, join(folder, "root.tar"));
    const config = {
      Cmd: ["python3", "-m", "aenv.main", "/app/twin.py", "--host", "0.0.0.0", "--port", String(ORIGINAL_SDK_PORT)],
      Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
      ExposedPorts: { [`${ORIGINAL_SDK_PORT}/tcp`]: {} },
      WorkingDir: "/app",
    };
    await writeDockerArchive(folder, [{ name: "aenv-test/original-sdk:latest", layers: ["root.tar", "app.tar"], config }]);
    await rename(join(folder, "image.tar"), archive);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return archive;
}

/** The beginning of a digest, for the names of cached files. */
export function digestOf(parts: readonly (string | Buffer)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(`${part.length}\n`).update(part);
  return hash.digest("hex").slice(0, 16);
}
