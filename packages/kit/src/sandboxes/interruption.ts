import { type CommandEnding, PlatformError } from "@aenv/contract";

/**
 * Throws `sandbox.lost` if processes of the sandbox were ended from outside while the command ran. For commands whose result decides a
 * reward: what the machine has ended is no failure of the agent.
 */
export function assertUninterrupted({ interruption }: Pick<CommandEnding, "interruption">): void {
  if (interruption === null) return;
  throw new PlatformError("sandbox.lost", `a command was interrupted: ${interruption}; run it again in a new sandbox`);
}
