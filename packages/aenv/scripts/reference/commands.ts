import type { Command } from "commander";
import picocolors from "picocolors";
import { loadProgram } from "../../src/cli.ts";
import type { Terminal } from "../../src/terminal/terminal.ts";
import { type Page, page } from "./page.ts";

/** `commands.md`: the help text of every command, as the command prints it. */
export async function commandsPage(): Promise<Page> {
  const parts = helpOf(await loadProgram(silentTerminal), "aenv");
  return page("commands.md", "Commands", "The help text of every command of `aenv`.", ...parts);
}

function* helpOf(command: Command, name: string): Generator<string> {
  let text = "";
  command.configureOutput({
    writeOut: (chunk) => {
      text += chunk;
    },
    getOutHelpWidth: () => 110,
    getOutHasColors: () => false,
  });
  command.outputHelp();
  const depth = name.split(" ").length;
  yield `${"#".repeat(Math.min(depth + 1, 4))} ${name}\n\n\`\`\`text\n${text.trim().replace(/[ \t]+$/gm, "")}\n\`\`\``;
  for (const sub of command.commands) if (sub.name() !== "help") yield* helpOf(sub, `${name} ${sub.name()}`);
}

const output = { colors: picocolors.createColors(false), isTty: false, columns: 110, write: () => undefined };

const silentTerminal: Terminal = {
  stdout: output,
  stderr: output,
  cwd: "/",
  env: {},
  isInteractive: false,
  stopSignal: () => new AbortController().signal,
};
