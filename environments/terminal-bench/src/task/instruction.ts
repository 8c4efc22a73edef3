import { strip } from "@aenv/benchmark";

/** Removes the canary lines at the start of a prompt, and the blank lines there. */
export function stripCanary(text: string): string {
  const lines = text.split("\n");
  let at = 0;
  while (at < lines.length && isCanary(strip(lines[at] ?? ""))) at++;
  while (at < lines.length && strip(lines[at] ?? "") === "") at++;
  return lines.slice(at).join("\n");
}

/** The instruction with the extra texts of a run. */
export function withExtraInstructions(instruction: string, extra: readonly string[]): string {
  return [instruction, ...extra].join("\n\n");
}

function isCanary(line: string): boolean {
  const isComment = line.startsWith("#") || (line.startsWith("<!--") && line.endsWith("-->"));
  return isComment && line.toLowerCase().includes("canary");
}
