import { instanceStatuses } from "@aenv/contract";
import type { InstanceRecord } from "@aenv/sdk";
import { type Command, Option } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { collectPair } from "../../options/pairs.ts";
import { refArgument } from "../../options/ref.ts";
import { integer } from "../../options/values.ts";
import { instanceTable, instanceTreeTable } from "../../platform/instance-view.ts";
import { addPlatformOptions, callServer, openPlatform, type Platform, type PlatformOptions } from "../../platform/platform.ts";
import { Failure } from "../../terminal/failure.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions, FormatOptions {
  readonly name?: string;
  readonly version?: string;
  readonly status?: string;
  readonly owner?: string;
  readonly label?: Record<string, string>;
  readonly limit?: number;
  readonly tree?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("list instances")
    .description("Lists your instances: those that run or start, and for ten minutes those that failed.")
    .option("-n, --name <name>", "only of this environment; name or name@version")
    .option("--version <version>", "only of this version of --name")
    .addOption(
      new Option("-s, --status <status>", "only of this status; terminated instances are listed only with Terminated").choices(
        instanceStatuses,
      ),
    )
    .option("--owner <owner>", "only this owner's, for administrators")
    .option("-l, --label <KEY=VALUE>", "only with this label; may be repeated", collectPair)
    .option("--tree", "with the children of each: the instances of other environments that belong to its episode")
    .option("--limit <number>", "the maximum number of instances; all if not given", integer(1, 1_000_000));
  addPlatformOptions(addOutputOption(command))
    .addHelpText(
      "after",
      examples(
        "aenv instance list",
        "aenv instance list --name my-env --version 1.0.0",
        "aenv instance list --tree",
        "aenv instance list --status Failed --json",
      ),
    )
    .action((options: Options) => list(options, terminal));
}

async function list(options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  if (options.version !== undefined && options.name === undefined) {
    throw new Failure("--version needs --name", { exit: "usage", hint: "Write it as: --name my-env --version 1.0.0" });
  }
  const platform = openPlatform(options, terminal);
  const ref = options.name === undefined ? undefined : refArgument(options.name, options.version);
  const found = await callServer(terminal, `Asking ${platform.url}`, () => gather(platform, options, ref));
  printer.json(found);
  if (printer.isJson) return;
  const of = ref === undefined ? "" : ` of ${ref}`;
  if (found.length > 0) printer.print((options.tree === true ? instanceTreeTable : instanceTable)(found, printer.output));
  else printer.print(`No instances${of}. Start one with: aenv instance create ${ref ?? "NAME"}`);
}

async function gather({ scheduler }: Platform, options: Options, ref: string | undefined): Promise<InstanceRecord[]> {
  const { status, owner, label: labels, tree, limit = Number.POSITIVE_INFINITY } = options;
  const filter = {
    ...(ref && { ref }),
    ...(status && { status }),
    ...(owner && { owner }),
    ...(labels && { labels }),
    ...(tree && { tree }),
  };
  const found: InstanceRecord[] = [];
  for await (const one of scheduler.eachInstance(filter)) {
    found.push(one);
    if (found.length >= limit) break;
  }
  return found;
}
