import { join } from "node:path";
import { type DockerDaemon, describeNeeding, startDocker, type Tree, temporaryTree, writeSmallImage } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { aenv } from "../../testing/cli.ts";

const project = new URL("../../bench/fixtures/sums", import.meta.url).pathname;

describeNeeding("docker", "the images of a benchmark, with Docker", () => {
  let docker: DockerDaemon;
  let tree: Tree;
  beforeAll(async () => {
    tree = temporaryTree({ "data/tasks.json": { one: [1], "image-a": [1], "image-b": [2] } });
    docker = await startDocker();
  }, 120_000);
  afterAll(async () => {
    await docker?.[Symbol.asyncDispose]();
    tree?.[Symbol.dispose]();
  }, 60_000);

  /** The exit code, and the state of each image. */
  async function images(...argv: string[]): Promise<[number, Record<string, boolean>]> {
    const { PATH } = process.env;
    const own = { AENV_HOME: join(tree.path, "home"), AENV_DOCKER_SOCKET: docker.socket, DOCKER_HOST: `unix://${docker.socket}`, PATH };
    const line = ["bench", "images", project, "--from", "data", "--json", ...argv];
    const { code, stdout, stderr } = await aenv(line, { cwd: tree.path, env: own });
    if (stdout === "") throw new Error(stderr);
    const found: { image: string; isPresent: boolean }[] = JSON.parse(stdout);
    return [code, Object.fromEntries(found.map(({ image, isPresent }) => [image.replace(/.*\/|:1$/g, ""), isPresent]))];
  }

  it("are built from their Dockerfiles and loaded from archives, for either engine", { timeout: 180_000 }, async () => {
    expect(await images("--engine", "docker")).toEqual([1, { "image-a": false, "image-b": false }]);
    const build = ["--build", "--build-arg", "FILE=tasks"];
    expect(await images("--engine", "docker", ...build)).toEqual([1, { "image-a": false, "image-b": true }]);
    const archive = await writeSmallImage(tree.path, {});
    const load = ["--load", `127.0.0.1:1/image-a:1=${archive}`];
    expect(await images("--engine", "docker", ...load)).toEqual([0, { "image-a": true, "image-b": true }]);
    expect(await images("--engine", "oci", ...build, "--pull")).toEqual([1, { "image-a": false, "image-b": true }]);
    expect(await images("--engine", "oci", ...load)).toEqual([0, { "image-a": true, "image-b": true }]);
  });
});
