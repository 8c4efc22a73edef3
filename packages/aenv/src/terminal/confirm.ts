import { Failure } from "./failure.ts";
import type { Terminal } from "./terminal.ts";

/** Asks before something that cannot be undone; false if the answer is no. Where nobody is there to ask, it must be said beforehand. */
export async function confirm(question: string, terminal: Terminal, saysYes: string): Promise<boolean> {
  if (!terminal.isInteractive)
    throw new Failure("nobody is here to be asked", { exit: "usage", hint: `Say that you mean it with ${saysYes}.` });
  const prompts = await import("@clack/prompts");
  const answer = await prompts.confirm({ message: question, initialValue: false, output: process.stderr });
  return !prompts.isCancel(answer) && answer;
}
