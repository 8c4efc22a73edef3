import { type Command, InvalidArgumentError } from "commander";
import { examples } from "../../options/examples.ts";
import { integer } from "../../options/values.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions {
  readonly minutes: number;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("make a link to a port inside a sandbox")
    .description(
      "Prints a link to a port inside an instance's sandbox, for HTTP and WebSocket. Whoever has the link may use it until it expires, without a token; nothing else is reached by it.",
    )
    .argument("<id>", "the instance")
    .argument("<port>", "the port that a program in the sandbox listens on", integer(1, 65_535))
    .option("-m, --minutes <number>", "how long the link is good for", minutes, 5)
    .option("--json", "as JSON");
  addPlatformOptions(command)
    .addHelpText("after", examples("aenv instance presign my-env-abc234 3000", "aenv instance presign my-env-abc234 3000 --minutes 30"))
    .action((id: string, port: number, options: Options) => presign(id, port, options, terminal));
}

async function presign(id: string, port: number, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const { scheduler } = openPlatform(options, terminal);
  const url = await callServer(terminal, `Making a link to ${id}`, () => scheduler.presignUrl(id, port, { minutes: options.minutes }));
  printer.json({ id, port, minutes: options.minutes, url });
  // Nothing else is printed, so that the link can be used by another command.
  if (!printer.isJson) printer.print(url);
}

function minutes(text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError("It must be a number of minutes above 0.");
}
