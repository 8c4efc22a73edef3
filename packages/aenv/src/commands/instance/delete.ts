import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { confirm } from "../../terminal/confirm.ts";
import { Failure } from "../../terminal/failure.ts";
import { createPrinter } from "../../terminal/printer.ts";
import { countText } from "../../terminal/table.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions {
  readonly yes?: boolean;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("delete instances")
    .description("Stops and deletes instances. Deleting one that has already ended is no error.")
    .argument("<ids...>", "the instances")
    .option("-y, --yes", "do not ask for confirmation")
    .option("--json", "print JSON");
  addPlatformOptions(command)
    .addHelpText("after", examples("aenv instance delete my-env-abc234", "aenv instance delete --yes my-env-abc234 my-env-def567"))
    .action((ids: string[], options: Options) => remove(ids, options, terminal));
}

async function remove(ids: readonly string[], options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const { scheduler } = openPlatform(options, terminal);
  const what = ids.length === 1 ? ids[0] : countText(ids.length, "instance");
  if (!options.yes && !(await confirm(`Delete ${what}?`, terminal, "--yes"))) {
    printer.json({ deleted: [], missing: [] });
    printer.print("Nothing was deleted.");
    return;
  }
  const deleted: string[] = [];
  const missing: string[] = [];
  await callServer(terminal, `Deleting ${what}`, async () => {
    for (const id of ids) ((await scheduler.deleteInstance(id)) ? deleted : missing).push(id);
  });
  printer.json({ deleted, missing });
  const { colors } = printer.output;
  for (const id of deleted) printer.print(`${colors.green("✔")} ${id} is deleted`);
  if (missing.length === 0) return;
  if (printer.isJson) throw new Failure([]);
  throw new Failure(
    missing.map((id) => ({ message: `there is no instance '${id}'` })),
    { code: "instance.not_found", hint: "List them with: aenv instance list" },
  );
}
