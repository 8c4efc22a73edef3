import { readBoundedText } from "@aenv/contract";
import type { Command } from "commander";
import { examples } from "../options/examples.ts";
import { addPlatformOptions, callServer, controlUrl, openPlatform, type PlatformOptions } from "../platform/platform.ts";
import { checkSettings, readSettings, settingsPath, writeSettings } from "../platform/settings.ts";
import { Failure } from "../terminal/failure.ts";
import { createPrinter } from "../terminal/printer.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface Options extends PlatformOptions {
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .description(
      "Stores a server's address and a token in the settings of this command, which only you can read. The token is read from a prompt, or from stdin.",
    )
    .argument("[url]", "the server, instead of --system-url")
    .option("--json", "print JSON");
  addPlatformOptions(command)
    .addHelpText("after", examples("aenv login http://aenv.example:8080", "aenv login http://aenv.example:8080 < token.txt"))
    .action((url: string | undefined, options: Options) => login(url, options, terminal));
}

async function login(given: string | undefined, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const systemUrl = given ?? options.systemUrl;
  const apiKey = options.apiKey ?? (await readToken(terminal));
  const { url, tokens } = openPlatform({ ...(systemUrl && { systemUrl }), apiKey }, terminal);
  const { owner, roles, token } = await callServer(terminal, `Asking ${url}`, () => tokens.whoAmI());

  const { path } = settingsPath(terminal);
  const own = readSettings(path);
  const hub_config = { ...own.hub_config, ...(token !== null && { api_key: apiKey }) };
  writeSettings(path, checkSettings({ ...own, system_url: controlUrl(url), hub_config }));
  printer.json({ url, owner, roles, path });
  const { colors } = printer.output;
  const as = token === null ? "which needs no token" : `as ${colors.bold(owner)} (${roles.join(", ")})`;
  printer.print(`${colors.green("✔")} ${url}, ${as}; stored in ${path}`);
}

async function readToken({ isInteractive }: Terminal): Promise<string> {
  if (!isInteractive) return (await readBoundedText(process.stdin, { maxBytes: 64 * 1024 })).trim();
  const prompts = await import("@clack/prompts");
  const answer = await prompts.password({ message: "Token", output: process.stderr });
  if (prompts.isCancel(answer)) throw new Failure("nothing was stored", { exit: "cancelled" });
  return answer.trim();
}
