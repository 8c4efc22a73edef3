import { fileURLToPath } from "node:url";
import { Environment } from "@aenv/sdk";
import { type DockerDaemon, describeNeeding, startDocker } from "@aenv/testing";
import { type Platform, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, expect, it } from "vitest";

const project = fileURLToPath(new URL("../..", import.meta.url));

/** Sends a request from the shell to each address of the sandbox, and prints each answer in a line. */
const request = (method: string, path: string) => `
  for address in 127.0.0.1 127.0.0.9 $own; do
    exec 7<>/dev/tcp/$address/8081 || { echo "$address: closed"; continue; }
    printf '${method} ${path} HTTP/1.1\\r\\nhost: localhost\\r\\ncontent-length: 2\\r\\nconnection: close\\r\\n\\r\\n{}' >&7
    echo "$address: $(head -c 4000 <&7 | tr -d '\\r\\n')"
    exec 7>&-
  done 2>/dev/null`;

/** The addresses of the sandbox besides those of loopback. */
const OWN = `own=$(/opt/aenv/node -p 'Object.values(os.networkInterfaces()).flat().filter((a) => !a.internal && a.family === "IPv4").map((a) => a.address).join(" ")')`;

for (const [component, flags] of [
  ["runc", { engine: "oci", runtime: "runc" }],
  ["runsc", { engine: "oci", runtime: "runsc" }],
  ["docker", { engine: "docker" }],
] as const) {
  describeNeeding(component, `the shell of mini-terminal with ${Object.values(flags).join(" and ")}`, () => {
    let daemon: DockerDaemon | undefined;
    let platform: Platform;
    let env: Environment;
    beforeAll(async () => {
      if (flags.engine === "docker") daemon = await startDocker();
      platform = await startPlatform({ flags: { ...flags, ...(daemon !== undefined && { dockerSocket: daemon.socket }) } });
      env = await Environment.create(await publish(platform, project), { systemUrl: platform.controlUrl });
    }, 240_000);
    afterAll(async () => {
      await env?.release();
      await platform?.close();
      await daemon?.[Symbol.asyncDispose]();
    }, 60_000);

    it.each([
      ["GET", "/episode/oracle"],
      ["POST", "/task/reset"],
      ["GET", "/env-instance/list"],
      ["POST", "/env-instance"],
      ["POST", "/stop"],
    ])("cannot use the API for trainers: %s %s", { timeout: 120_000 }, async (method, path) => {
      await env.reset({ task: "log-errors", seed: 1 });
      const ran = await env.callTool("execute_command", { command: `touch mark; ${OWN}; ${request(method, path)}` });
      const [text] = ran.json<{ output: [string, boolean] }>().output;
      const answers = text.trim().split("\n");
      // A sandbox of docker has no address but loopback.
      expect(answers.length, text).toBe(flags.engine === "docker" ? 2 : 3);
      expect(
        answers.filter((line) => !/: (?:closed|HTTP\/1\.1 403 Forbidden.*)$/.test(line)),
        text,
      ).toEqual([]);
      expect(
        answers.some((line) => line.includes("403 Forbidden")),
        text,
      ).toBe(true);
      // The platform still can, and nothing was reset.
      expect(await env.callTool("execute_command", { command: "ls mark" })).toMatchObject({ isError: false });
      expect((await env.episode.oracle())?.length).toBeGreaterThan(0);
    });
  });
}
