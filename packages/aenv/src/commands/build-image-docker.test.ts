import { execFile, execFileSync } from "node:child_process";
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { initProgram } from "@aenv/sandbox";
import {
  type DockerDaemon,
  describeNeeding,
  type ImageRegistry,
  startBuildkit,
  startDocker,
  startImageRegistry,
  temporaryTree,
} from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { aenv, installedTree } from "../testing/cli.ts";
import { type DockerBuilder, dockerBuilders, dockerVariables } from "../testing/docker-home.ts";

const dockerfile = 'FROM scratch\nARG WHO\nLABEL who=$WHO\nCOPY notes.txt /\nCMD ["/serve"]\n';
const project = {
  "config.json": { name: "my-env", version: "1.0.0", artifacts: [{ type: "whl", content: "x.whl" }] },
  Dockerfile: dockerfile,
  "notes.txt": "notes",
};

const run = promisify(execFile);
const builders = Object.entries(dockerBuilders) as [DockerBuilder, (typeof dockerBuilders)[DockerBuilder]][];

describeNeeding("docker", "build --image with Docker", () => {
  describeNeeding("docker-registry", "and a registry", () => {
    let daemon: DockerDaemon;
    let registry: ImageRegistry;
    beforeAll(async () => {
      [daemon, registry] = await Promise.all([startDocker(), startImageRegistry()]);
    }, 90_000);
    afterAll(async () => {
      await daemon?.[Symbol.asyncDispose]();
      await registry?.[Symbol.asyncDispose]();
    }, 60_000);

    const inspect = async (image: string) => {
      const { stdout } = await run("docker", ["--host", `unix://${daemon.socket}`, "image", "inspect", image]);
      return JSON.parse(stdout)[0];
    };
    const configOf = (root: string) => JSON.parse(readFileSync(join(root, "config.json"), "utf8"));

    for (const [builder, component] of builders)
      describeNeeding(component, `and the builder ${builder}`, () => {
        const variables = (home: string) => dockerVariables(builder, home, daemon.socket);
        // With its plugin, buildx is the first choice.
        const build = ["build", ...(builder === "docker" ? ["--builder", builder] : ["--image"])];
        /** Settings of the command with the registry's credentials. */
        const settings = () => {
          const { host, username, password } = registry;
          return { ".aenv/cli_config.json": { build_config: { registry: { host, namespace: builder, username, password } } } };
        };

        it("builds, tags and pushes the image, and writes it into config.json", { timeout: 120_000 }, async () => {
          using tree = temporaryTree({ ...project, ...settings() });
          const argv = [...build, "--image-tag", "1.0.0", "--image-tag", "latest", "--build-arg", "WHO=me", "--push", "--json"];
          const { code, stdout, stderr } = await aenv(argv, { cwd: tree.path, env: variables(tree.path) });
          expect(code, stderr).toBe(0);
          const image = `${registry.host}/${builder}/my-env:1.0.0`;
          const references = [image, `${registry.host}/${builder}/my-env:latest`];
          expect(JSON.parse(stdout)).toMatchObject({ image, references, builder, pushed: true, id: (await inspect(image)).Id });
          expect(await registry.tagsOf(`${builder}/my-env`)).toEqual(["1.0.0", "latest"]);
          expect((await inspect(image)).Config).toMatchObject({ Labels: { who: "me" }, Cmd: ["/serve"] });
          expect(configOf(tree.path).artifacts).toEqual([
            { type: "whl", content: "x.whl" },
            { id: "", type: "image", content: image },
          ]);
          // The steps of the builder are the progress.
          expect(stderr).toContain("COPY notes.txt /");
          expect(stdout + stderr).not.toContain(registry.password);
        });

        it("builds what buildConfig names, from a base that only the credentials of the settings can read", {
          timeout: 120_000,
        }, async () => {
          using tree = temporaryTree({
            "base/config.json": { name: "base", version: "1.0.0" },
            "base/Dockerfile": dockerfile,
            "base/notes.txt": "base",
            ...settings(),
          });
          const env = variables(tree.path);
          const base = await aenv([...build, "--work-dir", "base", "--push", "--json"], { cwd: tree.path, env });
          expect(base.code, base.stderr).toBe(0);
          const { image } = JSON.parse(base.stdout);
          await run("docker", ["--host", `unix://${daemon.socket}`, "image", "rm", image]);
          const buildConfig = { dockerfile: "docker/env.Dockerfile", context: "docker", image_name: "shop", image_tag: "stable" };
          tree.write({
            "config.json": { name: "my-env", version: "1.0.0", buildConfig },
            "docker/env.Dockerfile": `FROM ${image}\nCOPY own.txt /\n`,
            "docker/own.txt": "own",
          });
          const built = await aenv([...build, "--json"], { cwd: tree.path, env });
          expect(built.code, built.stderr).toBe(0);
          expect(JSON.parse(built.stdout).image).toBe(`${registry.host}/${builder}/shop:stable`);
          const { Config, RootFS } = await inspect(`${registry.host}/${builder}/shop:stable`);
          expect([Config.Cmd, RootFS.Layers.length]).toEqual([["/serve"], 2]);
        });

        it("says why it cannot push, and leaves config.json as it was", { timeout: 120_000 }, async () => {
          using tree = temporaryTree(project);
          const argv = [...build, "--registry", registry.host, "--push"];
          const { code, stderr } = await aenv(argv, { cwd: tree.path, env: variables(tree.path) });
          expect(code).toBe(1);
          expect(stderr).toMatch(/my-env:1\.0\.0 could not be pushed: .*(?:no basic auth|unauthorized|denied)/s);
          expect(configOf(tree.path)).toEqual(project["config.json"]);
        });

        it("says which step of the Dockerfile failed", { timeout: 120_000 }, async () => {
          const steps = ["FROM scratch", "COPY missing /", "LABEL a=1", "LABEL b=1", "LABEL c=1", "LABEL d=1", ""];
          using tree = temporaryTree({ ...project, Dockerfile: steps.join("\n") });
          const { code, stderr } = await aenv(build, { cwd: tree.path, env: variables(tree.path) });
          expect(code).toBe(1);
          expect(stderr).toMatch(/my-env:1\.0\.0 could not be built: .*COPY.*missing/s);
        });

        it("finds Docker at the socket of the settings, and pushes nothing with --no-push", { timeout: 120_000 }, async () => {
          const build_config = { build_args: { socket: `unix://${daemon.socket}` } };
          using tree = temporaryTree({ ...project, ".aenv/cli_config.json": { build_config } });
          const { DOCKER_HOST: _, ...env } = variables(tree.path);
          const argv = [...build, "--image-tag", `of-${builder}`, "--no-push", "--json"];
          const { code, stdout, stderr } = await aenv(argv, { cwd: tree.path, env });
          expect(code, stderr).toBe(0);
          expect(JSON.parse(stdout)).toMatchObject({ image: `docker.io/my-env:of-${builder}`, builder, pushed: false });
          expect((await inspect(`my-env:of-${builder}`)).Config).toMatchObject({ Cmd: ["/serve"] });
        });

        it("builds a project without a Dockerfile from its bundle", { timeout: 120_000 }, async () => {
          const code = 'import { registerTool } from "aenvironment";\nregisterTool({ name: "ask" }, () => 1);\n';
          using tree = installedTree({ "config.json": { name: `bundled-${builder}`, version: "2.0.0" }, "src/index.ts": code });
          const argv = [...build, "--build-arg", "BASE=scratch"];
          const { code: exit, stdout, stderr } = await aenv(argv, { cwd: tree.path, env: variables(tree.path) });
          expect(exit, stderr).toBe(0);
          expect(stdout).toContain(`built with ${builder}`);
          expect(stdout).toContain("Publish it: aenv push --image-only");
          expect(configOf(tree.path).deployConfig).toEqual({ port: 8081 });
          expect((await inspect(`bundled-${builder}:2.0.0`)).Config).toMatchObject({
            Cmd: ["node", "/opt/aenv/bundle/main.js", "--host", "0.0.0.0", "--port", "8081"],
            ExposedPorts: { "8081/tcp": {} },
            Labels: { "aenv.checks-callers": "/opt/aenv/bundle/main.js" },
          });
        });

        it("refuses several platforms without a registry to push to", { timeout: 120_000 }, async () => {
          using tree = temporaryTree(project);
          const argv = [...build, "--platform", "linux/amd64,linux/arm64"];
          const { code, stderr } = await aenv(argv, { cwd: tree.path, env: variables(tree.path) });
          expect([code, stderr]).toEqual([2, expect.stringContaining("can only be built with buildx, and with --push")]);
        });

        // The classic builder gives steps after FROM scratch the platform of the machine.
        if (builder === "docker") return;

        it("builds for another platform than the machine's", { timeout: 120_000 }, async () => {
          using tree = temporaryTree(project);
          const [other, architecture] = process.arch === "arm64" ? ["linux/amd64", "amd64"] : ["linux/arm64", "arm64"];
          const argv = [...build, "--platform", other, "--image-tag", "other", "--json"];
          const { code, stdout, stderr } = await aenv(argv, { cwd: tree.path, env: variables(tree.path) });
          expect(code, stderr).toBe(0);
          expect(JSON.parse(stdout)).toMatchObject({ platforms: [other] });
          expect(await inspect("my-env:other")).toMatchObject({ Os: "linux", Architecture: architecture });
        });

        it("says how several platforms are built if Docker's own builder is asked", { timeout: 120_000 }, async () => {
          using tree = temporaryTree({ ...project, ...settings() });
          const argv = [...build, "--platform", "linux/amd64,linux/arm64", "--push"];
          const { code, stderr } = await aenv(argv, { cwd: tree.path, env: variables(tree.path) });
          expect(code).toBe(1);
          expect(stderr).toMatch(/my-env:1\.0\.0 could not be built: .*not supported for the docker driver/s);
          expect(stderr).toContain("Create one that builds several: docker buildx create --use");
          expect(configOf(tree.path)).toEqual(project["config.json"]);
        });

        describeNeeding("buildkitd", "with a builder of several platforms", () => {
          describeNeeding("runc", "that the user has chosen", () => {
            it("builds and pushes one image for all, with several tags", { timeout: 120_000 }, async () => {
              await using buildkit = await startBuildkit();
              using tree = temporaryTree({ ...project, ...settings() });
              const env = variables(tree.path);
              await run("docker", ["buildx", "create", "--driver", "remote", "--use", buildkit.address], { env });
              const argv = [
                ...build,
                "--platform",
                "linux/amd64,linux/arm64",
                "--image-tag",
                "all",
                "--image-tag",
                "many",
                "--push",
                "--json",
              ];
              const { code, stdout, stderr } = await aenv(argv, { cwd: tree.path, env });
              expect(code, stderr).toBe(0);
              const platforms = ["linux/amd64", "linux/arm64"];
              const image = `${registry.host}/${builder}/my-env:all`;
              expect(JSON.parse(stdout)).toMatchObject({ image, platforms, builder, pushed: true, id: null });
              for (const tag of ["all", "many"]) expect(await registry.platformsOf(`${builder}/my-env:${tag}`)).toEqual(platforms);
              expect(configOf(tree.path).artifacts).toContainEqual({ id: "", type: "image", content: image });
              expect(stdout + stderr).not.toContain(registry.password);
            });
          });
        });
      });
  });

  describeNeeding("network-namespaces", "in a network of its own", () => {
    const namespace = `aenv-build-${process.pid}`;
    let daemon: DockerDaemon | undefined;
    beforeAll(async () => {
      execFileSync("ip", ["netns", "add", namespace]);
      // Containers of a build are in the network of the daemon, which it creates.
      daemon = await startDocker({ namespace, hasBridge: true, iptables: false });
    }, 90_000);
    afterAll(async () => {
      await daemon?.[Symbol.asyncDispose]();
      execFileSync("ip", ["netns", "del", namespace]);
    }, 60_000);

    for (const [builder, component] of builders)
      describeNeeding(component, `and the builder ${builder}`, () => {
        it("runs the programs of a Dockerfile, and says which one failed", { timeout: 120_000 }, async () => {
          const steps = ["FROM scratch", "COPY init /", 'RUN ["/init", "--copy-to", "/copy"]'];
          using tree = temporaryTree({ ...project, Dockerfile: steps.join("\n") });
          copyFileSync(await initProgram(process.arch as "x64" | "arm64"), join(tree.path, "init"));
          const options = { cwd: tree.path, env: dockerVariables(builder, tree.path, String(daemon?.socket)) };
          const built = await aenv(["build", "--builder", builder], options);
          expect(built.code, built.stderr).toBe(0);
          tree.write({ Dockerfile: [...steps, 'RUN ["/copy", "--nonsense"]', "LABEL a=1", "LABEL b=2", "LABEL c=3"].join("\n") });
          const { code, stderr } = await aenv(["build", "--builder", builder], options);
          expect(code).toBe(1);
          expect(stderr).toMatch(/my-env:1\.0\.0 could not be built: [^✖]*\/copy --nonsense/);
        });
      });
  });
});
