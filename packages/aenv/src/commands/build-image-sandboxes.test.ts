import { execFile } from "node:child_process";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { openBaseRoot } from "@aenv/sandbox";
import { Environment } from "@aenv/sdk";
import {
  type DockerDaemon,
  describeNeeding,
  type ImageRegistry,
  startDocker,
  startImageRegistry,
  temporaryTree,
  writeSmallRoot,
} from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startPlatform } from "../platform-tests/platform.ts";
import { aenv, installedTree } from "../testing/cli.ts";

describeNeeding("docker", "an image of build --image", () => {
  describeNeeding("docker-registry", "with a registry", () => {
    let daemon: DockerDaemon | undefined;
    let registry: ImageRegistry | undefined;
    beforeAll(async () => {
      [daemon, registry] = await Promise.all([startDocker(), startImageRegistry()]);
    }, 90_000);
    afterAll(async () => {
      await daemon?.[Symbol.asyncDispose]();
      await registry?.[Symbol.asyncDispose]();
    }, 60_000);

    const variables = (home: string) => ({ PATH: process.env.PATH, HOME: home, DOCKER_HOST: `unix://${daemon?.socket}` });
    /** Settings of the command with the registry's credentials. */
    const settings = () => {
      const { host, username, password } = registry as ImageRegistry;
      return { ".aenv/cli_config.json": { build_config: { registry: { host, namespace: "team", username, password } } } };
    };

    describeNeeding("runc", "and sandboxes", () => {
      describeNeeding("skopeo", "of images", () => {
        it("runs on a server of this machine without a registry", { timeout: 300_000 }, async () => {
          using tree = temporaryTree({
            "config.json": { name: "local", version: "1.0.0" },
            Dockerfile: 'FROM scratch\nADD root.tar /\nENV PATH=/usr/bin:/bin\nCMD ["sh"]\n',
          });
          await writeSmallRoot(tree.path, "root.tar", { "etc/greeting": "hello" });
          await using platform = await startPlatform({ flags: { engine: "oci" } });
          const env = { ...variables(tree.path), AENV_SYSTEM_URL: platform.controlUrl };
          const built = await aenv(["build", "--image"], { cwd: tree.path, env });
          expect(built.code, built.stderr).toBe(0);
          expect(built.stdout).toMatch(/Publish it: aenv push$/m);
          const load = /engine oci of a server here: aenv (.*)/.exec(built.stdout)?.[1]?.split(" ") ?? [];
          expect(load).toEqual(["image", "load", "docker-daemon:docker.io/local:1.0.0"]);
          const pushed = await aenv(["push"], { cwd: tree.path, env });
          expect(pushed.code, pushed.stderr).toBe(0);
          await expect(platform.create("local@1.0.0")).rejects.toThrow("aenv image load SOURCE --name NAME");
          const loaded = await aenv([...load, "--home", platform.home], { cwd: tree.path, env });
          expect(loaded.code, loaded.stderr).toBe(0);
          expect(loaded.stdout).toContain("docker.io/library/local:1.0.0 is loaded for the engine oci");
          const { id } = await platform.create("local@1.0.0");
          const { code, stdout, stderr } = await aenv(["exec", id, "--", "cat", "/etc/greeting"], { cwd: tree.path, env });
          expect([code, stdout], stderr).toEqual([0, "hello"]);
        });

        it("runs a TypeScript project with the engines oci and docker, where programs beside it cannot call the trainer API", {
          timeout: 300_000,
        }, async () => {
          const code = `
            import { execFile } from "node:child_process";
            import { existsSync } from "node:fs";
            import { promisify } from "node:util";
            import { registerReward, registerTool } from "aenvironment";
            registerTool({ name: "add" }, ({ a, b }) => a + b);
            registerTool({ name: "isImage" }, () => existsSync("/from-image"));
            registerReward({ name: "good" }, () => 0.5);
            registerTool({ name: "run" }, async ({ script }) => (await promisify(execFile)(process.execPath, ["--eval", script])).stdout);
          `;
          using tree = installedTree({
            "config.json": { name: "typed", version: "1.0.0", deployConfig: { port: 9100 } },
            "src/index.ts": code,
            "base/Dockerfile":
              "FROM scratch\nADD root.tar /\nENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nCOPY Dockerfile /from-image\n",
            ...settings(),
          });
          const base = await openBaseRoot({ folder: join(tree.path, "cache"), runner: "" });
          await pipeline(base.archive(), createWriteStream(join(tree.path, "base/root.tar")));
          const docker = promisify(execFile);
          const own = variables(tree.path);
          await docker("docker", ["build", "--tag", "node-base:24", join(tree.path, "base")], { env: { ...own, DOCKER_BUILDKIT: "0" } });
          const built = await aenv(["build", "--image", "--push", "--build-arg", "BASE=node-base:24"], { cwd: tree.path, env: own });
          expect(built.code, built.stderr).toBe(0);
          const publish = /Publish it: aenv (.*)/.exec(built.stdout)?.[1]?.split(" ") ?? [];
          expect(publish).toEqual(["push", "--image-only"]);
          const { host: insecure = "", authFile = "" } = registry ?? {};
          const flags = { registryAuth: authFile, insecureRegistries: [insecure], startTimeout: "2m" };
          for (const engine of [{ engine: "docker", dockerSocket: daemon?.socket }, { engine: "oci" }]) {
            await using platform = await startPlatform({ flags: { ...flags, ...engine } });
            const env = { ...own, AENV_SYSTEM_URL: platform.controlUrl };
            const pushed = await aenv(publish, { cwd: tree.path, env });
            expect(pushed.code, pushed.stderr).toBe(0);
            await using typed = await Environment.create("typed@1.0.0", { systemUrl: platform.controlUrl, dataUrl: platform.dataUrl });
            expect((await typed.callTool("add", { a: 2, b: 3 })).text, engine.engine).toBe("5");
            expect((await typed.callTool("isImage")).text).toBe("true");
            // A program beside the server cannot do what the gateway can.
            const script = `fetch("http://127.0.0.1:9100/task/reward", { method: "POST", body: "{}" }).then(({ status }) => console.log(status))`;
            expect((await typed.callTool("run", { script })).text, engine.engine).toBe("403\n");
            const { instanceId } = await typed.getEnvInfo();
            const ran = await aenv(["exec", instanceId, "--", "node", "--eval", script], { cwd: tree.path, env });
            expect([ran.code, ran.stdout], engine.engine + ran.stderr).toEqual([0, "403\n"]);
            expect(await typed.callReward()).toBe(0.5);
          }
        });

        it("is published with push, and runs with the engines oci and docker", { timeout: 300_000 }, async () => {
          using tree = temporaryTree({
            "config.json": { name: "served", version: "1.0.0", deployConfig: { port: 9000, healthPath: "/ready" } },
            Dockerfile: 'FROM scratch\nADD root.tar /\nCOPY server.mjs /app/\nWORKDIR /app\nCMD ["/usr/local/bin/node", "server.mjs"]\n',
            "server.mjs": `
              import { createServer } from "node:http";
              const answer = (request, response) => response.writeHead(request.url === "/ready" ? 200 : 201).end(process.env.envNAME);
              createServer(answer).listen(9000);
            `,
            ...settings(),
          });
          const base = await openBaseRoot({ folder: join(tree.path, "cache"), runner: "" });
          await pipeline(base.archive(), createWriteStream(join(tree.path, "root.tar")));
          const { host: insecure = "", authFile = "" } = registry ?? {};
          const flags = { registryAuth: authFile, insecureRegistries: [insecure], startTimeout: "2m" };
          for (const engine of [{ engine: "docker", dockerSocket: daemon?.socket }, { engine: "oci" }]) {
            await using platform = await startPlatform({ flags: { ...flags, ...engine } });
            const env = { ...variables(tree.path), AENV_SYSTEM_URL: platform.controlUrl };
            const build = ["build", "--image", "--push", "--json"];
            const argvs = engine.engine === "docker" ? [build, ["push"]] : [["push"]];
            for (const argv of argvs) {
              const { code, stderr } = await aenv(argv, { cwd: tree.path, env });
              expect(code, stderr).toBe(0);
            }
            const { id } = await platform.create("served@1.0.0");
            const answer = await fetch(`${platform.dataUrl}/env-instance/${id}/anything`);
            expect([answer.status, await answer.text()]).toEqual([201, "served"]);
          }
        });
      });
    });
  });
});
