import type { Environment } from "@aenv/sdk";
import type { EvalSandbox } from "../../evaluate/sandbox.ts";

/** The sandbox of an instance's task, used from outside. */
export function instanceSandbox({ sandbox }: Environment): EvalSandbox {
  return {
    exec: async (command, { cwd, timeoutMs } = {}) => {
      const { exitCode, timedOut, stdout } = await sandbox.exec(["/bin/sh", "-c", 'exec "$@" 2>&1', "sh", ...command], {
        user: "root",
        ...(cwd !== undefined && { cwd }),
        ...(timeoutMs !== undefined && { timeoutMs }),
      });
      return { exitCode: timedOut ? null : (exitCode ?? 137), output: Buffer.from(stdout) };
    },
    write: async (path, bytes) => {
      await sandbox.files.write(path, bytes);
    },
  };
}
