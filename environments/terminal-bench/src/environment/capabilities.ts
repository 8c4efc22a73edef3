import type { TaskSandboxes } from "@aenv/kit";
import type { Settings } from "./settings.ts";

const HINT = "; TERMINAL_BENCH_CAPABILITIES=minimal plays tasks without them, and those that need them get 0";

/** Opens all sandboxes with the capabilities of the settings. A refusal names the setting: which tasks need them is not known. */
export function withCapabilities(sandboxes: TaskSandboxes, capabilities: Settings["capabilities"]): TaskSandboxes {
  return {
    ...sandboxes,
    open: async (options) => {
      try {
        return await sandboxes.open({ ...options, ...(capabilities !== null && { capabilities }) });
      } catch (error) {
        if (isRefused(error)) error.message += HINT;
        throw error;
      }
    },
  };
}

function isRefused(error: unknown): error is Error {
  if (!(error instanceof Error) || !error.message.includes("taskSandboxes.capabilities")) return false;
  return (error as { readonly code?: unknown }).code === "instance.unsupported";
}
