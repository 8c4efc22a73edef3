import { execFile } from "node:child_process";
import { copyFileSync, createWriteStream, readFileSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { initProgram, openBaseRoot } from "@aenv/sandbox";
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
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startPlatform } from "../platform-tests/platform.ts";
import { aenv, installedTree } from "../testing/cli.ts";

const dockerfile = 'FROM scratch\nARG WHO\nLABEL who=$WHO\nCOPY notes.txt /\nCMD ["/serve"]\n';
const project = {
  "config.json": { name: "my-env", version: "1.0.0", artifacts: [{ type: "whl", content: "x.whl" }] },
  Dockerfile: dockerfile,
  "notes.txt": "notes",
};

describe("build --image", () => {
  it("names what to install if there is no builder", async () => {
    using tree = temporaryTree(project);
    const { code, stderr } = await aenv(["build", "--image"], { cwd: tree.path, env: { PATH: tree.path, HOME: tree.path } });
    expect(code).toBe(1);
    expect(stderr).toContain("there is no image builder here; none of buildx, docker, buildah, podman works");
    expect(stderr).toContain("Install Docker, buildah or podman");
  });

  for (const builder of ["buildah", "podman"] as const)
    describeNeeding(builder, `with ${builder}`, () => {
      describeNeeding("docker-registry", "and a registry", () => {
        it("builds, tags and pushes the image without a daemon", { timeout: 120_000 }, async () => {
          await using registry = await startImageRegistry();
          const { host, username, password } = registry;
          using tree = temporaryTree({
            ...project,
            // Runs a program, for which the builder makes a container.
            Dockerfile: `${dockerfile}COPY init /\nRUN ["/init", "--copy-to", "/copy"]\n`,
            ".aenv/cli_config.json": { build_config: { registry: { host, namespace: "team", username, password } } },
          });
          copyFileSync(await initProgram(process.arch as "x64" | "arm64"), join(tree.path, "init"));
          // vfs mounts nothing.
          tree.write({
            "storage.conf": `[storage]\ndriver = "vfs"\ngraphroot = "${tree.path}/images"\nrunroot = "${tree.path}/run"\n`,
          });
          const env = {
            PATH: process.env.PATH,
            HOME: tree.path,
            CONTAINERS_STORAGE_CONF: join(tree.path, "storage.conf"),
            // Not by crun, which refuses to start on machines with control groups of both versions.
            BUILDAH_ISOLATION: "chroot",
          };
          const argv = ["build", "--image", "--builder", builder, "--image-tag", "1.0.0", "--image-tag", "latest", "--push", "--json"];
          const { code, stdout, stderr } = await aenv([...argv, "--build-arg", "WHO=me"], { cwd: tree.path, env });
          expect(code, stderr).toBe(0);
          const image = `${host}/team/my-env:1.0.0`;
          expect(JSON.parse(stdout)).toMatchObject({ image, builder, pushed: true, id: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) });
          expect(await registry.tagsOf("team/my-env")).toEqual(["1.0.0", "latest"]);
          expect(JSON.parse(readFileSync(join(tree.path, "config.json"), "utf8")).artifacts).toContainEqual({
            id: "",
            type: "image",
            content: image,
          });
          // The steps of the builder are the progress.
          expect(stderr).toContain("COPY notes.txt /");
          expect(stdout + stderr).not.toContain(password);
        });
      });
    });

  describeNeeding("docker", "with Docker", () => {
    describeNeeding("docker-registry", "and a registry", () => {
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
      const inspect = async (image: string) => {
        const { stdout } = await promisify(execFile)("docker", ["image", "inspect", image], { env: variables("/nonexistent") });
        return JSON.parse(stdout)[0];
      };
      /** Settings of the command with the registry's credentials. */
      const settings = () => {
        const { host, username, password } = registry as ImageRegistry;
        return { ".aenv/cli_config.json": { build_config: { registry: { host, namespace: "team", username, password } } } };
      };

      it("builds, tags and pushes the image, and writes it into config.json", { timeout: 120_000 }, async () => {
        using tree = temporaryTree({ ...project, ...settings() });
        const argv = ["build", "--image", "--image-tag", "1.0.0", "--image-tag", "latest", "--build-arg", "WHO=me", "--push", "--json"];
        const { code, stdout, stderr } = await aenv(argv, { cwd: tree.path, env: variables(tree.path) });
        expect(code, stderr).toBe(0);
        const image = `${registry?.host}/team/my-env:1.0.0`;
        const references = [image, `${registry?.host}/team/my-env:latest`];
        expect(JSON.parse(stdout)).toMatchObject({ image, references, pushed: true, id: expect.stringMatching(/^sha256:/) });
        expect(await registry?.tagsOf("team/my-env")).toEqual(["1.0.0", "latest"]);
        expect((await inspect(image)).Config).toMatchObject({ Labels: { who: "me" }, Cmd: ["/serve"] });
        expect(JSON.parse(readFileSync(join(tree.path, "config.json"), "utf8")).artifacts).toEqual([
          { type: "whl", content: "x.whl" },
          { id: "", type: "image", content: image },
        ]);
        // The steps of the builder are the progress.
        expect(stderr).toContain("COPY notes.txt /");
        expect(stdout + stderr).not.toContain(registry?.password);
      });

      it("says why it cannot push, and leaves config.json as it was", { timeout: 120_000 }, async () => {
        using tree = temporaryTree(project);
        const argv = ["build", "--registry", String(registry?.host), "--push"];
        const { code, stderr } = await aenv(argv, { cwd: tree.path, env: variables(tree.path) });
        expect(code).toBe(1);
        expect(stderr).toMatch(/my-env:1\.0\.0 could not be pushed: .*(?:no basic auth|unauthorized|denied)/s);
        expect(JSON.parse(readFileSync(join(tree.path, "config.json"), "utf8"))).toEqual(project["config.json"]);
      });

      it("says which step of the Dockerfile failed", { timeout: 120_000 }, async () => {
        using tree = temporaryTree({ ...project, Dockerfile: "FROM scratch\nCOPY missing /\n" });
        const { code, stderr } = await aenv(["build", "--image"], { cwd: tree.path, env: variables(tree.path) });
        expect(code).toBe(1);
        expect(stderr).toMatch(/my-env:1\.0\.0 could not be built: .*COPY.*missing/s);
      });

      it("finds Docker at the socket of the settings, and pushes nothing with --no-push", { timeout: 120_000 }, async () => {
        const build_config = { build_args: { socket: `unix://${daemon?.socket}` } };
        using tree = temporaryTree({ ...project, ".aenv/cli_config.json": { build_config } });
        const { DOCKER_HOST: _, ...env } = variables(tree.path);
        const { code, stdout, stderr } = await aenv(["build", "--image-tag", "2.0.0", "--no-push", "--json"], { cwd: tree.path, env });
        expect(code, stderr).toBe(0);
        expect(JSON.parse(stdout)).toMatchObject({ image: "docker.io/my-env:2.0.0", pushed: false });
        expect((await inspect("my-env:2.0.0")).Config).toMatchObject({ Cmd: ["/serve"] });
      });

      it("refuses several platforms without buildx", { timeout: 120_000 }, async () => {
        using tree = temporaryTree(project);
        const argv = ["build", "--builder", "docker", "--platform", "linux/amd64,linux/arm64"];
        const { code, stderr } = await aenv(argv, { cwd: tree.path, env: variables(tree.path) });
        expect([code, stderr]).toEqual([2, expect.stringContaining("can only be built with buildx, and with --push")]);
      });

      it("builds a project without a Dockerfile from its bundle", { timeout: 120_000 }, async () => {
        const code = 'import { registerTool } from "aenvironment";\nregisterTool({ name: "ask" }, () => 1);\n';
        using tree = installedTree({ "config.json": { name: "bundled", version: "2.0.0" }, "src/index.ts": code });
        const argv = ["build", "--image", "--build-arg", "BASE=scratch"];
        const { code: exit, stdout, stderr } = await aenv(argv, { cwd: tree.path, env: variables(tree.path) });
        expect(exit, stderr).toBe(0);
        expect(stdout).toContain("bundled:2.0.0");
        expect(stdout).toContain("Publish it: aenv push --image-only");
        expect(JSON.parse(readFileSync(join(tree.path, "config.json"), "utf8")).deployConfig).toEqual({ port: 8081 });
        expect((await inspect("bundled:2.0.0")).Config).toMatchObject({
          Cmd: ["node", "/opt/aenv/bundle/main.js", "--host", "0.0.0.0", "--port", "8081"],
          ExposedPorts: { "8081/tcp": {} },
          Labels: { "aenv.checks-callers": "/opt/aenv/bundle/main.js" },
        });
      });

      describeNeeding("runc", "and sandboxes", () => {
        describeNeeding("skopeo", "of images", () => {
          it("gives an image that a server of this machine runs without a registry", { timeout: 300_000 }, async () => {
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

          it("runs a TypeScript project from its image with the engines oci and docker", { timeout: 300_000 }, async () => {
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

          it("gives an image that is published with push, and runs with the engines oci and docker", { timeout: 300_000 }, async () => {
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
});
