import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { temporaryTree } from "./tree.ts";

/** A real registry of images for one test: on loopback, with its images in a temporary folder; ended with the scope. */
export interface ImageRegistry extends AsyncDisposable {
  /** `127.0.0.1:PORT`. Container tools accept HTTP on loopback. */
  readonly host: string;
  readonly username: string;
  readonly password: string;
  /** A file with its credentials, in the format of `docker login`. */
  readonly authFile: string;
  /** Copies an archive in the format of `docker save` to an image such as `team/my-env:1`, and returns its whole name. Needs `skopeo`. */
  push(archive: string, image: string): Promise<string>;
  /** The tags of an image, such as `team/my-env`. */
  tagsOf(name: string): Promise<readonly string[]>;
  /** The platforms of an image with a list of them, such as `team/my-env:1`, in the order of their names. */
  platformsOf(image: string): Promise<readonly string[]>;
}

const username = "tester";
const password = "correct horse";
/** The password, as `htpasswd -B` writes it. */
const HTPASSWD = `${username}:$2b$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2\n`;

/** Needs the component `docker-registry`. Only its user can push and pull. */
export async function startImageRegistry(): Promise<ImageRegistry> {
  const tree = temporaryTree({ htpasswd: HTPASSWD });
  const settings = {
    version: "0.1",
    storage: { filesystem: { rootdirectory: join(tree.path, "images") } },
    http: { addr: "127.0.0.1:0" },
    auth: { htpasswd: { realm: "test", path: join(tree.path, "htpasswd") } },
  };
  // JSON is YAML.
  tree.write({ "config.yml": settings });
  const child = spawn("docker-registry", ["serve", join(tree.path, "config.yml")], { stdio: ["ignore", "ignore", "pipe"] });
  const end = async () => {
    const ended = child.exitCode === null ? once(child, "exit") : null;
    child.kill("SIGKILL");
    await ended;
    tree[Symbol.dispose]();
  };
  try {
    const host = await addressOf(child.stderr);
    const auth = Buffer.from(`${username}:${password}`).toString("base64");
    tree.write({ "auth.json": { auths: { [host]: { auth } } } });
    const authFile = join(tree.path, "auth.json");
    return {
      host,
      username,
      password,
      authFile,
      push: async (archive, image) => {
        // Fast rather than small: it is unpacked again soon.
        const options = ["--authfile", authFile, "--dest-tls-verify=false", "--dest-compress-format=gzip", "--dest-compress-level=1"];
        await promisify(execFile)("skopeo", ["copy", ...options, `docker-archive:${archive}`, `docker://${host}/${image}`]);
        return `${host}/${image}`;
      },
      tagsOf: async (name) => {
        const response = await fetch(`http://${host}/v2/${name}/tags/list`, { headers: { authorization: `Basic ${auth}` } });
        const { tags } = (await response.json()) as { tags?: string[] | null };
        return [...(tags ?? [])].sort();
      },
      platformsOf: async (image) => {
        const headers = { authorization: `Basic ${auth}`, accept: "application/vnd.oci.image.index.v1+json" };
        const response = await fetch(`http://${host}/v2/${image.replace(/:(?=[^:]*$)/, "/manifests/")}`, { headers });
        const { manifests = [] } = (await response.json()) as { manifests?: { platform: { os: string; architecture: string } }[] };
        // What is said about the build has the platform `unknown`.
        return manifests
          .map(({ platform: { os, architecture } }) => `${os}/${architecture}`)
          .filter((one) => !one.includes("unknown"))
          .sort();
      },
      [Symbol.asyncDispose]: end,
    };
  } catch (error) {
    await end();
    throw error;
  }
}

async function addressOf(stderr: NodeJS.ReadableStream): Promise<string> {
  const lines: string[] = [];
  for await (const line of createInterface({ input: stderr })) {
    lines.push(line);
    const [, address] = /listening on (127\.0\.0\.1:\d+)/.exec(line) ?? [];
    if (address === undefined) continue;
    // Read on: a full pipe would stop the registry.
    stderr.resume();
    return address;
  }
  throw new Error(`docker-registry did not start:\n${lines.join("\n")}`);
}
