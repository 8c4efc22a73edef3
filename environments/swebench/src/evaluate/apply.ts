import { decodeStrict } from "@aenv/benchmark";
import { APPLIED, APPLY_FAILED, ATTEMPTS, PATCH_FILE, REPOSITORY, RESET, REVERSE_CHECK } from "./attempts.ts";
import { EvaluationError } from "./error.ts";
import type { InstanceLog } from "./log.ts";
import type { EvalSandbox } from "./sandbox.ts";

/** Applies a patch in the repository of the sandbox. Throws an `EvaluationError` if no way of applying it works. */
export async function applyPatch(sandbox: EvalSandbox, patch: string, log: InstanceLog): Promise<void> {
  await sandbox.write(PATCH_FILE, new TextEncoder().encode(patch));
  const inRepository = { cwd: REPOSITORY };
  let output = "";
  for (const [i, command] of ATTEMPTS.entries()) {
    if (i > 0) await sandbox.exec(RESET, inRepository);
    const result = await sandbox.exec(command, inRepository);
    output = decodeStrict(result.output, `the output of '${command.join(" ")}'`);
    if (result.exitCode === 0) return log.info(`${APPLIED}:\n${output}`);
  }
  const reverse = await sandbox.exec(REVERSE_CHECK, inRepository);
  if (reverse.exitCode === 0) return log.info(`${APPLIED}: verified already applied`);
  log.info(`${APPLY_FAILED}:\n${output}`);
  throw new EvaluationError(`${APPLY_FAILED}:\n${output}`);
}
