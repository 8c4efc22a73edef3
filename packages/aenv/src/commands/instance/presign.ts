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
    .summary("create a link to a port inside a sandbox")
    .description(
      "Prints a link to a port inside an instance's sandbox, for HTTP and WebSocket. The link works without a token until it expires, and only for this port.",
    )
    .argument("<id>", "the instance")
    .argument("<port>", "the port that a program in the sandbox listens on", integer(1, 65_535))
    .option("-m, --minutes <number>", "how many minutes the link is valid", minutes, 5)
    .option("--json", "print JSON");
  addPlatformOptions(command)
    .addHelpText("after", examples("aenv instance presign my-env-abc234 3000", "aenv instance presign my-env-abc234 3000 --minutes 30"))
    .action((id: string, port: number, options: Options) => presign(id, port, options, terminal));
}

async function presign(id: string, port: number, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const { scheduler } = openPlatform(options, terminal);
  const url = await callServer(terminal, `Creating a link to ${id}`, () => scheduler.presignUrl(id, port, { minutes: options.minutes }));
  printer.json({ id, port, minutes: options.minutes, url });
  // Nothing else is printed, so that another command can use the output.
  if (!printer.isJson) printer.print(url);
}

function minutes(text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError("It must be a number of minutes above 0.");
}
