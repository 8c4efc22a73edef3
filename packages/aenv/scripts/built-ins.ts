import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

/**
 * Puts the built-in environments into the package, each as a project of plain JavaScript that is run and published like any other.
 * Benchmarks also export `./data`, the module that prepares their data, and `./bench`, for `aenv bench run`.
 */
export async function writeBuiltIns(root: string, out: string): Promise<void> {
  const read = (path: string) => JSON.parse(readFileSync(join(root, "environments", path), "utf8"));
  for (const name of readdirSync(join(root, "environments"))) {
    // Without one it is a library, and no project.
    if (!existsSync(join(root, "environments", name, "config.json"))) continue;
    const { version, exports } = read(`${name}/package.json`);
    const modules = ["data", "bench"].filter((one) => exports[`./${one}`] !== undefined);
    const config = read(`${name}/config.json`);
    const folder = join(root, "environments", name);
    const to = join(out, name);
    await build({
      absWorkingDir: folder,
      entryPoints: { environment: config.main, ...Object.fromEntries(modules.map((one) => [one, exports[`./${one}`]])) },
      outdir: to,
      chunkNames: "chunk-[hash]",
      bundle: true,
      splitting: true,
      platform: "node",
      format: "esm",
      target: "node22",
      // Imports of an author's project: they are resolved in the installed package.
      alias: { "@aenv/kit": "aenvironment/kit" },
      external: ["aenvironment", "zod"],
      logLevel: "warning",
    });
    const json = (file: string, value: object) => writeFileSync(join(to, file), `${JSON.stringify(value, null, 2)}\n`);
    const own = { ".": "./environment.js", ...Object.fromEntries(modules.map((one) => [`./${one}`, `./${one}.js`])) };
    json("config.json", { ...config, main: "environment.js" });
    json("package.json", { name, version, private: true, type: "module", exports: own });
    cpSync(join(folder, "README.md"), join(to, "README.md"));
  }
}
