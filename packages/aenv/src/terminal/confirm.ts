import { Failure } from "./failure.ts";
import type { Terminal } from "./terminal.ts";

/** Asks before an action that cannot be undone; false if the answer is no. Without an interactive terminal, `flag` is required instead. */
export async function confirm(question: string, terminal: Terminal, flag: string): Promise<boolean> {
  if (!terminal.isInteractive)
    throw new Failure("this needs a confirmation, and the terminal is not interactive", { exit: "usage", hint: `Confirm with ${flag}.` });
  const prompts = await import("@clack/prompts");
  const answer = await prompts.confirm({ message: question, initialValue: false, output: process.stderr });
  return !prompts.isCancel(answer) && answer;
}
