import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Problem } from "./problem.ts";
import { runTool } from "./tool.ts";

/** Errors of the TypeScript compiler; `interop` is checked only if its packages are installed. */
export async function checkTypes(root: string): Promise<readonly Problem[]> {
  const projects = ["."];
  if (existsSync(join(root, "interop/tsconfig.json")) && existsSync(join(root, "interop/node_modules"))) projects.push("interop");
  const outputs = await Promise.all(projects.map((project) => runTool(root, "tsc", ["--noEmit", "--pretty", "false", "-p", project])));
  return outputs.flatMap(({ ok, output }, index) => {
    const problems = readTypeErrors(output);
    if (ok || problems.length > 0) return problems;
    return [{ file: join(projects[index] ?? ".", "tsconfig.json"), message: output.trim() }];
  });
}

/** `src/a.ts(3,7): error TS2322: …`, followed by indented lines. */
export function readTypeErrors(output: string): Problem[] {
  const problems: Problem[] = [];
  for (const line of output.split("\n")) {
    const found = /^(\S.*)\((\d+),\d+\): error (TS\d+: .*)$/.exec(line);
    if (found !== null) problems.push({ file: found[1] as string, line: Number(found[2]), message: found[3] as string });
  }
  return problems;
}
