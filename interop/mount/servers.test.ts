import { execFile } from "node:child_process";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { Environment } from "@aenv/sdk";
import {
  type DockerDaemon,
  describeNeeding,
  dockerAuth,
  type ImageRegistry,
  originalSdkImage,
  pythonRlPath,
  startDocker,
  startImageRegistry,
  type Tree,
  temporaryTree,
} from "@aenv/testing";
import { aenv } from "aenvironment/cli-tests";
import { type Platform, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const run = promisify(execFile);
/** A busy machine starts Python for longer than a minute. */
const slowly = { startTimeout: "4m" };

// Servers of others, pinned: what they offer differs between versions.
const VERSION = "2026.8.31";
const servers = {
  everything: ["npx", "-y", `@modelcontextprotocol/server-everything@${VERSION}`],
  filesystem: ["npx", "-y", `@modelcontextprotocol/server-filesystem@${VERSION}`, "."],
  memory: ["npx", "-y", `@modelcontextprotocol/server-memory@${VERSION}`],
} as const;

async function mount(tree: Tree, name: string, command: readonly string[], path = process.env.PATH): Promise<string> {
  const { code, stderr } = await aenv(["mount", "mcp", "--name", name, "--", ...command], {
    cwd: tree.path,
    env: { ...process.env, PATH: path },
  });
  if (code !== 0) throw new Error(stderr);
  return join(tree.path, name);
}

describeNeeding("npm-registry", "real MCP servers of npm, mounted", () => {
  let tree: Tree;
  beforeAll(async () => {
    tree = temporaryTree();
    for (const [name, command] of Object.entries(servers)) await mount(tree, name, command);
  }, 600_000);
  afterAll(() => tree?.[Symbol.dispose]());

  it("are one file each, beside their data files", () => {
    for (const name of Object.keys(servers))
      expect(readFileSync(join(tree.path, name, "vendor/server.mjs")).length, name).toBeGreaterThan(100_000);
    expect(readFileSync(join(tree.path, "everything/vendor/package/dist/docs/features.md"), "utf8")).toContain("#");
  });

  describe("on the engine process", () => {
    useThem(() => tree, { flags: {} });
  });

  describeNeeding("runc", "on the engine oci", () => {
    useThem(() => tree, { flags: { engine: "oci", runtime: "runc" }, forks: true });
  });

  describeNeeding("docker", "on the engine docker", () => {
    useThem(() => tree, { flags: { engine: "docker" } });
  });
});

interface Place {
  readonly flags: Readonly<Record<string, unknown>>;
  readonly forks?: boolean;
}

function useThem(tree: () => Tree, { flags, forks = false }: Place): void {
  let daemon: DockerDaemon | undefined;
  let platform: Platform;
  beforeAll(async () => {
    if (flags.engine === "docker") daemon = await startDocker();
    platform = await startPlatform({ flags: { ...slowly, ...flags, ...(daemon !== undefined && { dockerSocket: daemon.socket }) } });
  }, 240_000);
  afterAll(async () => {
    await platform?.close();
    await daemon?.[Symbol.asyncDispose]();
  }, 120_000);

  const open = async (name: string) =>
    Environment.create(await publish(platform, join(tree().path, name)), { systemUrl: platform.controlUrl });
  const textOf = async (env: Environment, tool: string, args: object = {}) =>
    (await env.callTool(tool, args as Record<string, never>)).text;

  it("everything answers with every kind of result", { timeout: 240_000 }, async () => {
    await using env = await open("everything");
    expect(await textOf(env, "echo", { message: "hello" })).toBe("Echo: hello");
    expect(await textOf(env, "get-sum", { a: 2, b: 3 })).toContain("5");
    expect((await env.callTool("get-tiny-image")).content.some(({ type }) => type === "image")).toBe(true);
    expect((await env.callTool("get-structured-content", { location: "New York" })).structuredContent).toMatchObject({
      temperature: expect.any(Number),
    });
    // Its variables are neither those of this process nor those of the environment.
    expect(await textOf(env, "get-env")).not.toContain("AENV_OWN");
    expect(await env.callTool("get-sum", { a: "two" })).toMatchObject({ isError: true });
    expect(await env.callReward()).toBe(1);
  });

  it("filesystem reads and writes in the working folder of its episode, and nowhere else", { timeout: 240_000 }, async () => {
    await using env = await open("filesystem");
    expect(await textOf(env, "write_file", { path: "list.txt", content: "milk" })).toContain("Successfully");
    expect(await textOf(env, "read_text_file", { path: "list.txt" })).toContain("milk");
    expect(await env.callTool("read_text_file", { path: "/etc/passwd" })).toMatchObject({ isError: true });
    await env.reset();
    expect(await env.callTool("read_text_file", { path: "list.txt" })).toMatchObject({ isError: true });
  });

  it("memory keeps a graph for each instance apart", { timeout: 240_000 }, async () => {
    await using env = await open("memory");
    await using other = await open("memory");
    const entities = [{ name: "milk", entityType: "thing", observations: ["white"] }];
    await env.callTool("create_entities", { entities });
    expect(await textOf(env, "read_graph")).toContain("white");
    expect(await textOf(other, "read_graph")).not.toContain("white");
    if (!forks) {
      await expect(env.fork(1)).rejects.toMatchObject({ code: expect.stringMatching(/unsupported/) });
      return;
    }
    const [copy] = await env.fork(1);
    if (copy === undefined) throw new Error("there is no copy");
    expect(await textOf(copy, "read_graph")).toContain("white");
    await copy.callTool("delete_entities", { entityNames: ["milk"] });
    expect(await textOf(copy, "read_graph")).not.toContain("white");
    expect(await textOf(env, "read_graph")).toContain("white");
    await copy.release();
  });
}

describeNeeding("python-rl", "a real MCP server of PyPI, mounted", () => {
  let tree: Tree;
  let project: string;
  beforeAll(async () => {
    tree = temporaryTree();
    // A Python that has pip.
    const path = [dirname(pythonRlPath), process.env.PATH].join(delimiter);
    project = await mount(tree, "time", ["uvx", "mcp-server-time@2026.10.19", "--local-timezone", "UTC"], path);
  }, 600_000);
  afterAll(() => tree?.[Symbol.dispose]());

  const convert = async (platform: Platform, folder = project) => {
    await using env = await Environment.create(await publish(platform, folder), { systemUrl: platform.controlUrl });
    return (await env.callTool("convert_time", { source_timezone: "UTC", time: "12:00", target_timezone: "Asia/Tokyo" })).text;
  };

  it("answers on the engine process", { timeout: 240_000 }, async () => {
    await using platform = await startPlatform({ flags: slowly });
    expect(await convert(platform)).toContain("21:00");
  });

  describeNeeding("mmdebstrap", "in an image with Python", () => {
    describeNeeding("docker-registry", "from a registry", () => {
      let registry: ImageRegistry;
      let inImage: string;
      let flags: Readonly<Record<string, unknown>>;
      beforeAll(async () => {
        registry = await startImageRegistry();
        const image = `${registry.host}/team/python:3`;
        const access = ["--dest-tls-verify=false", `--dest-creds=${registry.username}:${registry.password}`];
        await run("skopeo", ["copy", "--quiet", ...access, `docker-archive:${await originalSdkImage()}`, `docker://${image}`]);
        inImage = join(tree.path, "time-in-image");
        cpSync(project, inImage, { recursive: true });
        for (const file of ["config.json", "src/index.ts"]) {
          const text = readFileSync(join(project, file), "utf8");
          writeFileSync(join(inImage, file), text.replace(/"python:[\d.]+-slim"/, JSON.stringify(image)));
        }
        writeFileSync(join(tree.path, "auth.json"), dockerAuth(registry));
        flags = { ...slowly, registryAuth: join(tree.path, "auth.json"), insecureRegistries: [registry.host] };
      }, 600_000);
      afterAll(() => registry?.[Symbol.asyncDispose]());

      describeNeeding("runc", "on the engine oci", () => {
        it("answers", { timeout: 240_000 }, async () => {
          await using platform = await startPlatform({ flags: { ...flags, engine: "oci", runtime: "runc" } });
          expect(await convert(platform, inImage)).toContain("21:00");
        });
      });

      describeNeeding("docker", "on the engine docker", () => {
        it("answers", { timeout: 240_000 }, async () => {
          await using daemon = await startDocker();
          await using platform = await startPlatform({ flags: { ...flags, engine: "docker", dockerSocket: daemon.socket } });
          expect(await convert(platform, inImage)).toContain("21:00");
        });
      });
    });
  });
});
