import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Terminal } from "./terminal.ts";

/** Shows long text page by page at a terminal, with $PAGER or less; prints it where there is none. */
export async function page(text: string, { stdout, input, env }: Pick<Terminal, "stdout" | "input" | "env">): Promise<void> {
  const rows = input?.size().rows ?? Number.POSITIVE_INFINITY;
  const pager = env.PAGER ?? "less";
  if (!stdout.isTty || pager === "" || pager === "cat" || text.split("\n").length < rows) return stdout.write(text);
  // Without R, less shows colours as escape codes.
  const child = spawn("sh", ["-c", pager], { stdio: ["pipe", "inherit", "inherit"], env: { LESS: "FRX", ...env } });
  // A pager that is left early closes its input.
  child.stdin.on("error", () => {});
  child.stdin.end(text);
  const [code] = await once(child, "close");
  // The shell found no such program.
  if (code === 127) stdout.write(text);
}
