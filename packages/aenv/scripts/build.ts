import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Architecture, initProgram } from "@aenv/sandbox";
import { build } from "esbuild";
import { runnerBuild } from "../src/server/runner.ts";
import { writeBuiltIns } from "./built-ins.ts";
import { writeDeclarations } from "./declarations.ts";
import { guardEntries } from "./guard.ts";
import { publishedManifest } from "./manifest.ts";

const own = fileURLToPath(new URL("..", import.meta.url));
const root = join(own, "../..");
const dist = resolve(process.argv[2] ?? join(own, "dist"));

/** The modules that can be imported, then those that the command and the server start. */
const entryPoints = {
  index: "src/index.ts",
  kit: "src/kit.ts",
  sdk: "src/sdk.ts",
  adapters: "src/adapters.ts",
  rollout: "src/rollout.ts",
  main: "src/main.ts",
  sandbox: "src/dev/sandbox.ts",
  describe: "src/bundle/describe.ts",
  worker: "@aenv/server/worker",
  launcher: "@aenv/sandbox/launcher",
  unpack: "@aenv/sandbox/unpack",
};

// npm run build [-- folder]: the one publishable package, by default in packages/aenv/dist. `npm pack` there creates the tarball.
const manifest = publishedManifest(root);
const external = Object.keys(manifest.dependencies);
rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });

// The inner packages are bundled. Code that several entry points share goes into chunks, so that nothing is duplicated.
const common = {
  absWorkingDir: own,
  bundle: true,
  splitting: true,
  format: "esm",
  target: "node22",
  external,
  logLevel: "warning",
} as const;
await build({ ...common, entryPoints, outdir: join(dist, "lib"), platform: "node", chunkNames: "chunk-[hash]" });
// One file, because sandboxes of images get only this one.
await build({ ...runnerBuild, absWorkingDir: own, entryPoints: { runner: "@aenv/kit/runner" }, outdir: join(dist, "lib") });
await build({ ...common, entryPoints: { sdk: "src/sdk.ts" }, outdir: join(dist, "lib/browser"), platform: "browser", target: "es2024" });

guardEntries(join(dist, "lib"), ["index", "kit", "sdk", "adapters", "rollout"]);
writeDeclarations(root, join(dist, "types"));
await writeBuiltIns(root, join(dist, "environments"));
await writeInits();
cpSync(join(own, "bin"), join(dist, "bin"), { recursive: true });
cpSync(join(own, "templates"), join(dist, "templates"), { recursive: true });
cpSync(join(own, "README.md"), join(dist, "README.md"));
cpSync(join(root, "LICENSE"), join(dist, "LICENSE"));
writeFileSync(join(dist, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
console.log(`${manifest.name} ${manifest.version} is in ${dist}`);

/** Without Go, the package is complete except for process 1 of isolated sandboxes. */
async function writeInits(): Promise<void> {
  const architectures: readonly Architecture[] = ["x64", "arm64"];
  try {
    for (const one of architectures) cpSync(await initProgram(one), join(dist, "init", `init-${one}`));
  } catch (error) {
    console.error(`The engines oci and docker will not work: ${(error as Error).message}`);
    rmSync(join(dist, "init"), { recursive: true, force: true });
  }
}
