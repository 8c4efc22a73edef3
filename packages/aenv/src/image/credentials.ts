import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { isObject } from "@aenv/contract";
import type { RegistrySettings } from "./plan.ts";

/** Variables with which builders use the credentials of a registry. Leaving the scope deletes them. */
export interface Credentials extends Disposable {
  readonly variables: Readonly<Record<string, string>>;
}

/**
 * The credentials of the settings as a file in the format of `docker login`, which only this user can read, so that a password is in no
 * command line. Without credentials in the settings, builders use their own.
 */
export function openCredentials(
  registry: string | null,
  { username = "", password = "" }: RegistrySettings,
  env: Readonly<Record<string, string | undefined>>,
): Credentials {
  if (username === "" || password === "") return { variables: {}, [Symbol.dispose]: () => undefined };
  // Docker stores the credentials of its own registry under this name.
  const host = registry === null || registry === "docker.io" ? "https://index.docker.io/v1/" : registry;
  const own = env.DOCKER_CONFIG || join(env.HOME || homedir(), ".docker");
  const folder = mkdtempSync(join(tmpdir(), "aenv-registry-"));
  // Plugins and other settings of Docker stay as they are.
  for (const name of entriesOf(own)) if (name !== "config.json") symlinkSync(join(own, name), join(folder, name));
  const config = readConfig(join(own, "config.json"));
  const auths = isObject(config.auths) ? config.auths : {};
  const helpers = isObject(config.credHelpers) ? config.credHelpers : {};
  const auth = Buffer.from(`${username}:${password}`).toString("base64");
  const withPassword = { ...config, auths: { ...auths, [host]: { auth } } };
  const write = (name: string, helper: object): string => {
    const file = join(folder, name);
    writeFileSync(file, JSON.stringify({ ...withPassword, credHelpers: { ...helpers, ...helper } }), { mode: 0o600 });
    return file;
  };
  // An empty helper: the password of this registry is in the file and not in the machine's password store. buildah and podman would look for a program.
  write("config.json", { [host]: "" });
  const file = write("auth.json", { [host]: undefined });
  return {
    variables: { DOCKER_CONFIG: folder, REGISTRY_AUTH_FILE: file },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function readConfig(file: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
