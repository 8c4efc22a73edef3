import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { listFiles } from "./files.ts";
import { lineAt, type Problem } from "./problem.ts";
import { runTool } from "./tool.ts";
import { readTypeErrors } from "./types.ts";

/** One fenced block of TypeScript in a text. */
export interface Snippet {
  readonly code: string;
  /** The line of the text on which its code begins. */
  readonly line: number;
}

/** Below node_modules, so that imports resolve as they would for a reader, and other tools ignore it. */
const FOLDER = "node_modules/.cache/snippets";

const options = {
  extends: "../../../tsconfig.json",
  compilerOptions: { moduleDetection: "force", lib: ["es2024", "esnext.disposable"] },
  include: ["*.ts"],
  exclude: [],
};

/** Every TypeScript block in the docs must compile on its own; blocks with the fence `ts fragment` are skipped. */
export async function checkSnippets(root: string): Promise<readonly Problem[]> {
  const folder = join(root, FOLDER);
  const origins = new Map<string, { file: string; line: number }>();
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  try {
    const files = (await listFiles(root)).filter((path) => path.endsWith(".md") && !path.includes("/templates/"));
    for (const file of files) {
      for (const { code, line } of findSnippets(await readFile(join(root, file), "utf8"))) {
        const name = `${file.replaceAll("/", "_")}_${line}.ts`;
        origins.set(name, { file, line });
        writeFileSync(join(folder, name), code);
      }
    }
    if (origins.size === 0) return [];
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(options));
    const { ok, output } = await runTool(root, "tsc", ["--noEmit", "--pretty", "false", "-p", FOLDER]);
    const problems = readTypeErrors(output).map((problem) => {
      const origin = origins.get(problem.file.slice(problem.file.lastIndexOf("/") + 1));
      return origin === undefined ? problem : { ...problem, file: origin.file, line: origin.line + (problem.line ?? 1) - 1 };
    });
    return ok || problems.length > 0 ? problems : [{ file: "docs", message: output.trim() }];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function findSnippets(markdown: string): Snippet[] {
  return [...markdown.matchAll(/^```(?:ts|typescript)[ \t]*\n([\s\S]*?)^```[ \t]*$/gm)].map((found) => ({
    code: found[1] as string,
    line: lineAt(markdown, found.index) + 1,
  }));
}
