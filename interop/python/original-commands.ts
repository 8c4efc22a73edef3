import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pythonPath } from "@aenv/testing";
import { variables } from "./original.ts";

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The original's `aenv`, imported once for all commands. Leaving the scope ends it. */
export interface OriginalCommands extends AsyncDisposable {
  run(...args: string[]): Promise<Ran>;
}

export function originalCommands(options: { readonly cwd: string; readonly variables: Record<string, string> }): OriginalCommands {
  const child = spawn(pythonPath, [join(import.meta.dirname, "original_commands.py")], {
    cwd: options.cwd,
    env: variables(options.variables),
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const exited = once(child, "exit");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    run: async (...args) => {
      child.stdin.write(`${JSON.stringify(args)}\n`);
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`aenv ${args.join(" ")}: the process that runs commands has ended:\n${stderr}`);
      return JSON.parse(value);
    },
    [Symbol.asyncDispose]: async () => {
      child.stdin.end();
      await exited;
    },
  };
}
