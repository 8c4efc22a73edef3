import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type DockerDaemon, describeNeeding, startDocker, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { urlOf } from "./calls.ts";
import { startChild } from "./child.ts";
import { publish } from "./platform.ts";

const SECRET = "zq-secret-reference-3d9e";
const HASH = createHash("sha256").update(SECRET).digest("hex");

/** Says which secret it has without saying the secret, unless it shall fail. While a publication is verified, it has none. */
const program = `
  import { createHash } from "node:crypto";
  import { createServer } from "node:http";
  const { API_KEY, FAIL, PORT, HOST } = process.env;
  if (FAIL) throw new Error("no access with " + API_KEY);
  createServer((_, response) => response.end(createHash("sha256").update(API_KEY ?? "").digest("hex"))).listen(PORT, HOST);
`;

/** No file of the platform is as large but the programs of the sandboxes. */
const LARGEST_BYTES = 20 * 2 ** 20;

function describeSecrets(flags: () => Readonly<Record<string, unknown>>): void {
  it("is in the sandbox, and in no file, log, record, event and listing of the platform", { timeout: 180_000 }, async () => {
    using secrets = temporaryTree({ "root/weather-key": SECRET });
    await using child = await startChild({ ...flags(), access: "on", logLevel: "trace", secretsDir: secrets.path });
    const headers = { authorization: `Bearer ${child.token}` };
    const command = ["node", "program.mjs"];
    const deployConfig = { secrets: { API_KEY: "weather-key" } };
    using project = temporaryTree({
      "config.json": { name: "shop", version: "1.0.0", deployConfig, runtime: { command } },
      "program.mjs": program,
    });
    const ref = await publish(child, project.path, { headers });
    const { id } = await child.create(ref, {}, headers);
    expect(await (await fetch(urlOf(child, id, "/"), { headers })).text()).toBe(HASH);
    const asked = [
      await child.ask("POST", "/env-instance", { envName: ref, environment_variables: { FAIL: "yes" } }, headers),
      ...(await Promise.all(
        [
          `/env-instance/${id}`,
          `/env-instance/${id}/events`,
          `/env-instance/${id}/logs`,
          "/env-instance/*/list",
          "/env/shop/1.0.0",
          "/config",
        ].map((path) => child.ask("GET", path, undefined, headers)),
      )),
    ];
    expect(asked[0]).toMatchObject({ success: false, message: expect.stringContaining("no access with ***") });
    for (const { message, data } of asked) expect(JSON.stringify([message, data])).not.toContain(SECRET);
    const stored = await child.ask("POST", `/env-instance/${id}/snapshot`, { name: "kept", fidelity: "files" }, headers);
    expect(stored.success).toBe(false);
    expect(child.log()).not.toContain(SECRET);
    expect(filesWith(child.home, SECRET)).toEqual([]);
  });
}

for (const runtime of ["runc", "runsc"] as const)
  describeNeeding(runtime, `a secret of an environment, with the engine oci and ${runtime}`, () => {
    describeSecrets(() => ({ engine: "oci", runtime }));
  });

describeNeeding("docker", "a secret of an environment, with the engine docker", () => {
  let daemon: DockerDaemon;
  beforeAll(async () => {
    daemon = await startDocker();
  }, 120_000);
  afterAll(async () => {
    await daemon?.[Symbol.asyncDispose]();
  }, 60_000);
  describeSecrets(() => ({ engine: "docker", dockerSocket: daemon.socket }));
});

/** The files below a folder that contain a text, the files of running sandboxes included. */
function filesWith(folder: string, text: string): string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  expect(files.map(({ name }) => name)).toContain("server.db");
  return files.map(({ parentPath, name }) => join(parentPath, name)).filter((path) => contentOf(path).includes(text));
}

/** Empty for a file that its writer has replaced or removed since it was listed. */
function contentOf(path: string): string {
  try {
    return statSync(path).size < LARGEST_BYTES ? readFileSync(path, "latin1") : "";
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}
