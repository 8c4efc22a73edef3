import type { SnapshotRecord } from "@aenv/contract";
import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { snapshotTable } from "../../platform/snapshot-view.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions, FormatOptions {
  readonly owner?: string;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("list stored snapshots")
    .description("Lists your stored snapshots by name.")
    .option("--owner <owner>", "of this owner; for administrators");
  addPlatformOptions(addOutputOption(command))
    .addHelpText("after", examples("aenv snapshot list", "aenv snapshot list --json"))
    .action((options: Options) => list(options, terminal));
}

async function list({ owner, ...options }: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const { snapshots, url } = openPlatform(options, terminal);
  const found = await callServer(terminal, `Asking ${url}`, async () => {
    const all: SnapshotRecord[] = [];
    for await (const one of snapshots.each(owner === undefined ? {} : { owner })) all.push(one);
    return all;
  });
  printer.json(found);
  if (printer.isJson) return;
  if (found.length > 0) printer.print(snapshotTable(found, printer.output));
  else printer.print("No snapshots. Store one with: aenv snapshot create INSTANCE --name NAME");
}
