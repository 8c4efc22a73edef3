import { isObject } from "@aenv/contract";
import { type Command, Option } from "commander";
import { examples } from "../../options/examples.ts";
import {
  effectiveSettings,
  maskSecrets,
  readSettings,
  type Settings,
  settingsPath,
  unusedSettings,
  variableOverrides,
} from "../../platform/settings.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { parseKey, valueAt, withValue } from "./key.ts";

interface Options {
  readonly key?: string;
  readonly format?: string;
  readonly json?: boolean;
  readonly reveal?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("show all settings")
    .description("Shows the effective settings: of the file, of environment variables, and the defaults. Secrets are masked.")
    .option("--key <key>", "only this one, e.g. hub_config")
    .option("--reveal", "show secrets unmasked")
    .addOption(new Option("--format <format>", "the format of the output").choices(["table", "json"]).default("table"))
    .option("--json", "print JSON")
    .addHelpText("after", examples("aenv config show", "aenv config show --key hub_config", "aenv config show --json"))
    .action((options: Options) => show(options, terminal));
}

function show(options: Options, terminal: Terminal): void {
  const printer = createPrinter(terminal, options.json === true || options.format === "json");
  const { path, exists } = settingsPath(terminal);
  const own = readSettings(path);
  const changed = variableOverrides(terminal.env);
  const effective = changed.reduce<Settings>((all, each) => withValue(all, each.key.split("."), each.value), effectiveSettings(own));
  const shown = (options.reveal ? effective : maskSecrets(effective)) as Settings;
  const key = options.key === undefined ? [] : parseKey(options.key, own);
  const value = key.length === 0 ? shown : valueAt(shown, key);
  if (printer.isJson) {
    printer.json(value ?? null);
    return;
  }
  const { colors } = printer.output;
  printer.print(colors.dim(exists ? path : `defaults; ${path} does not exist`));
  const unused = unusedSettings(own);
  if (unused.length > 0) printer.print(colors.dim(`not used by this command, and kept in the file: ${unused.join(", ")}`));
  const rows = flatten(value, key.join("."));
  const width = Math.max(...rows.map(([name]) => name.length));
  for (const [name, each] of rows) {
    const variable = changed.find((change) => change.key === name)?.variable;
    const source = variable ?? (valueAt(own, name.split(".")) === undefined ? "default" : "");
    printer.print(
      `${colors.cyan(name.padEnd(width))}  ${typeof each === "string" && each !== "" ? each : JSON.stringify(each)}${source === "" ? "" : `  ${colors.dim(source)}`}`,
    );
  }
}

function flatten(value: unknown, name: string): [name: string, value: unknown][] {
  if (!isObject(value) || Object.keys(value).length === 0) return [[name, value]];
  return Object.entries(value).flatMap(([key, each]) => flatten(each, name === "" ? key : `${name}.${key}`));
}
