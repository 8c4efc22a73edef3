import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type DockerDaemon, startDocker } from "./docker.ts";
import { ORIGINAL_SDK_PORT, originalSdkImage } from "./images.ts";
import { describeNeeding } from "./needs.ts";
import { writePackage } from "./platform-images.ts";
import { temporaryTree } from "./tree.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const original = "aenv-test/original-sdk:latest";

describeNeeding("docker", "images from Debian packages", () => {
  describeNeeding("mmdebstrap", "that are built without a registry", () => {
    let daemon: DockerDaemon | undefined;

    beforeAll(async () => {
      daemon = await startDocker();
      await docker("load", "--quiet", "--input", await originalSdkImage());
    }, 15 * 60_000);
    afterAll(() => daemon?.[Symbol.asyncDispose](), 60_000);

    const docker = async (...args: readonly string[]) => {
      // The builder of Docker 20, which needs no plugin.
      const env = { ...process.env, DOCKER_HOST: `unix://${daemon?.socket}`, DOCKER_BUILDKIT: "0" };
      return (await promisify(execFile)("docker", args, { env, maxBuffer: 2 ** 24 })).stdout.trim();
    };

    /** Builds an image of `deploy/images`, with its name as the tag. */
    const buildImage = (name: string, context: string) => {
      const file = join(root, "deploy/images", name, "Dockerfile");
      return docker("build", "--quiet", "--network=none", `--build-arg=BASE=${original}`, `--file=${file}`, `--tag=${name}`, context);
    };

    it("serve an environment with the original Python SDK", { timeout: 180_000 }, async () => {
      const id = await docker("run", "--detach", "--network", "none", original);
      const script = `import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:${ORIGINAL_SDK_PORT}/health").status)`;
      const health = () => docker("exec", id, "python3", "-c", script).catch(() => null);
      await expect.poll(health, { interval: 500, timeout: 120_000 }).toBe("200");
    });

    it("become the base image of sandboxes with Node, the runner and the init", { timeout: 180_000 }, async () => {
      using context = temporaryTree();
      const { outputFiles } = await build({
        entryPoints: [join(root, "packages/kit/src/runner/start.js")],
        bundle: true,
        write: false,
        platform: "node",
        format: "esm",
      });
      for (const folder of ["lib", "init"]) mkdirSync(join(context.path, folder));
      writeFileSync(join(context.path, "lib/runner.js"), outputFiles[0]?.text ?? "");
      writeFileSync(join(context.path, `init/init-${process.arch}`), "#!/bin/sh\necho the init\n");
      await buildImage("base", context.path);
      const version = await docker("run", "--rm", "--network", "none", "base", "/opt/aenv/node", "--version");
      expect(version).toBe(process.version);
      expect(await docker("run", "--rm", "--network", "none", "base", "/opt/aenv/init")).toBe("the init");
      await expect(docker("run", "--rm", "--network", "none", "base")).rejects.toMatchObject({
        code: 2,
        stderr: expect.stringContaining("the runner needs a socket to listen on"),
      });
    });

    it("become the image of the server, which answers as its own user", { timeout: 300_000 }, async () => {
      using context = temporaryTree();
      await writePackage(join(context.path, "lib/node_modules/aenvironment"));
      await buildImage("server", context.path);
      const id = await docker("run", "--detach", "--network", "none", "server");
      const script = 'fetch("http://127.0.0.1:8080/health").then((answer) => console.log(answer.status, process.getuid()))';
      const health = () => docker("exec", id, "node", "-e", script).catch(() => null);
      await expect.poll(health, { interval: 500, timeout: 60_000 }).toBe("200 65532");
    });
  });
});
