import type { Problem } from "./problem.ts";
import { runTool } from "./tool.ts";

/** Biome's rules and formatting; `npm run format` fixes what can be fixed automatically. */
export async function checkLint(root: string): Promise<readonly Problem[]> {
  const args = ["check", "--reporter=concise", "--error-on-warnings", "--max-diagnostics=200", "--no-errors-on-unmatched"];
  const { ok, output } = await runTool(root, "biome", args);
  const problems = readLintErrors(output);
  return ok || problems.length > 0 ? problems : [{ file: "biome.json", message: output.trim() }];
}

/** `× src/a.ts:1:10: lint/rule: message`; the formatter gives no line. */
export function readLintErrors(output: string): Problem[] {
  const problems: Problem[] = [];
  for (const line of output.split("\n")) {
    const found = /^[×!] (.+?)(?::(\d+):\d+)?: (.+)$/.exec(line);
    if (found === null) continue;
    const [, file = "", at, text = ""] = found;
    const message = text.startsWith("format:") ? "is not formatted: run npm run format" : text;
    problems.push({ file, ...(at === undefined ? {} : { line: Number(at) }), message });
  }
  return problems;
}
