import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { type DockerDaemon, describeNeeding, type ImageRegistry, startDocker, startImageRegistry, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { aenv, installedTree } from "../testing/cli.ts";

const dockerfile = 'FROM scratch\nARG WHO\nLABEL who=$WHO\nCOPY notes.txt /\nCMD ["/serve"]\n';
const project = {
  "config.json": { name: "my-env", version: "1.0.0", artifacts: [{ type: "whl", content: "x.whl" }] },
  Dockerfile: dockerfile,
  "notes.txt": "notes",
};

describeNeeding("docker", "build --image with Docker", () => {
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
  });
});
