import { once } from "node:events";
import { resolve } from "node:path";
import { isPlatformError, messageOf } from "@aenv/contract";
import { type RunningServer, readServerConfig, type ServerConfig, shownConfig, startServer } from "@aenv/server";
import { openTrainerServices } from "@aenv/trainer";
import { type Command, Option } from "commander";
import { examples } from "../options/examples.ts";
import { ownPackage } from "../project/own-package.ts";
import { builtIns } from "../server/built-ins.ts";
import { runnerCode, runnerCommand } from "../server/runner.ts";
import { headingOf, settingOrder } from "../server/setting-groups.ts";
import { serverSettings, settingText } from "../server/settings.ts";
import { settingSources } from "../server/sources.ts";
import { workerCommand } from "../server/worker.ts";
import { Failure, toFailure } from "../terminal/failure.ts";
import { createPrinter, type Printer } from "../terminal/printer.ts";
import { withSpinner } from "../terminal/spinner.ts";
import { facts } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { tildePath } from "../terminal/tilde-path.ts";

interface Options extends Readonly<Record<string, unknown>> {
  readonly config?: string;
  readonly printConfig?: boolean;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .description(
      "Starts the platform in this process: the hub, the instances and their gateway. It needs no other software. A flag overrides its variable, which overrides the config file. Ctrl-C stops it after calls in flight have finished; a second Ctrl-C stops it at once.",
    )
    .option("-c, --config <file>", "a JSON file with any of the settings below; their names are in camelCase")
    .option("--print-config", "print the effective settings, without secrets, and exit")
    .option("--json", "print one line of JSON per event");
  const settings = serverSettings().sort((one, other) => settingOrder.indexOf(one.key) - settingOrder.indexOf(other.key));
  for (const { key, flag, does, defaultText, variable, isList } of settings) {
    const option = new Option(flag, `${does}${defaultText === "" ? "" : ` (${defaultText})`} [$${variable}]`);
    option.helpGroup(headingOf(key) ?? "Other settings:");
    command.addOption(isList ? option.argParser((text) => text.split(",")) : option);
  }
  command
    .addHelpText(
      "after",
      examples(
        "aenv server",
        "aenv server --control-port 9080 --data-port 9081 --home ./platform",
        "aenv server --store redis://localhost:6379 --host 0.0.0.0 --allow-process-engine",
        "aenv server --engine oci --runtime runsc",
        "aenv server --engine docker",
        "aenv server --engine kubernetes --kubeconfig ~/.kube/config --base-image registry.example.org/aenv-base:1",
        "aenv server --print-config --json",
      ),
    )
    .action((options: Options) => serve(options, terminal));
}

async function serve(options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const flags = Object.fromEntries(serverSettings().map(({ key }) => [key, options[key]]));
  const file = options.config === undefined ? undefined : resolve(terminal.cwd, options.config);
  const given = { flags, variables: terminal.env, ...(file !== undefined && { file }) };
  const config = readConfig(given);
  const sources = settingSources(given);
  if (options.printConfig) {
    printConfig(shownConfig(config), sources, printer);
    return;
  }
  const stop = terminal.stopSignal();
  // On a terminal the text below is enough, unless a log level is set.
  const isQuiet = terminal.stderr.isTty && !printer.isJson && sources.get("logLevel") === "default";
  const server = await withSpinner(terminal, "Starting", () => start(isQuiet ? { ...config, logLevel: "warn" } : config, terminal.env));
  try {
    const token = await server.firstToken();
    welcome(server, config, token, printer);
    if (!stop.aborted) await once(stop, "abort");
    printer.jsonLine({ event: "stopping" });
    printer.print(printer.output.colors.dim("\nStopping after calls in flight have finished. Ctrl-C again stops at once."));
  } finally {
    await server.close();
  }
  printer.jsonLine({ event: "stopped" });
}

function readConfig(given: Parameters<typeof readServerConfig>[0]): ServerConfig {
  try {
    return readServerConfig(given);
  } catch (error) {
    const { problems, exit, code, cause } = toFailure(error);
    throw new Failure(problems, { exit, code, cause, hint: "List the settings with: aenv server --help" });
  }
}

async function start(config: ServerConfig, env: Terminal["env"]): Promise<RunningServer> {
  try {
    return await startServer({
      config,
      runner: runnerCommand(config.home),
      runnerCode,
      worker: workerCommand(config.home),
      openTrainerServices,
      version: ownPackage().version,
      machineVariables: env,
      builtIns: builtIns(),
    });
  } catch (error) {
    const { problems, exit, code, cause } = toFailure(error);
    throw new Failure(problems, { exit, code, cause, hint: startHint(error, config) });
  }
}

function startHint(error: unknown, config: ServerConfig): string | undefined {
  const cause = (error as { cause?: NodeJS.ErrnoException }).cause?.code;
  if (cause === "EADDRINUSE") return "Choose other ports, such as: aenv server --control-port 9080 --data-port 9081";
  if (cause === "EACCES") return "Choose ports above 1024, or give this process the permission to open that one.";
  if (isPlatformError(error, "store.unavailable", "store.invalid"))
    return `The store is ${String(shownConfig(config).store)}; choose one with --store.`;
  if (isPlatformError(error, "request.invalid") && messageOf(error).includes("allowProcessEngine"))
    return `To allow it: aenv server --host ${config.host} --allow-process-engine`;
  return undefined;
}

function welcome(server: RunningServer, config: ServerConfig, token: string | null, printer: Printer): void {
  const { controlUrl, dataUrl, adminUrl, access } = server;
  const { store } = shownConfig(config);
  printer.jsonLine({
    event: "ready",
    controlUrl,
    dataUrl,
    adminUrl,
    store,
    home: config.home,
    access: access.isOn ? "on" : "off",
    linksAreGuessed: linksAreGuessed(config),
    pid: process.pid,
    ...(token !== null && { token }),
  });
  const { output } = printer;
  const { colors } = output;
  const hasDefaultPorts = new URL(controlUrl).port === "8080" && new URL(dataUrl).port === "8081";
  printer.print(`${colors.green("✔")} AEnv ${ownPackage().version} is running`);
  printer.print();
  printer.print(
    facts(
      [
        ["Control", `${colors.cyan(controlUrl)}  ${colors.dim(`the hub and instances; ${controlUrl}/docs lists the API`)}`],
        ["Data", `${colors.cyan(dataUrl)}  ${colors.dim("agents and trainers")}`],
        ["Admin", adminUrl === null ? "" : `${colors.cyan(adminUrl)}  ${colors.dim("metrics and configuration, on this machine only")}`],
        ["Store", tildePath(String(store))],
        ["Home", tildePath(config.home)],
        ["Access", access.isOn ? "on: a token is needed" : "off: every client that can reach it has full access"],
      ],
      output,
    ),
  );
  printer.print();
  if (token !== null) {
    printer.print(`  ${colors.yellow("The first token, for the administrator. It is shown only once:")}`);
    printer.print(`  ${colors.bold(token)}`);
    printer.print(colors.dim(`  Store it with: aenv login ${controlUrl}   then create others with: aenv token create --owner NAME`));
    printer.print();
  }
  if (linksAreGuessed(config)) {
    const port = new URL(dataUrl).port;
    printer.print(
      colors.yellow(
        `  Links for agents have the host name of the control port's client, and port ${port}. Behind a proxy, set the address of the data port with --public-url`,
      ),
    );
    printer.print();
  }
  printer.print(
    `  ${colors.dim("Publish an environment, in its folder:")} aenv push${hasDefaultPorts ? "" : ` --system-url ${controlUrl}`}`,
  );
  const use = hasDefaultPorts ? "AENV_SYSTEM_URL=http://localhost" : `{ controlUrl: "${controlUrl}", dataUrl: "${dataUrl}" }`;
  printer.print(`  ${colors.dim("Use it from code:")} await Environment.create("my-env")  ${colors.dim(`with ${use}`)}`);
  if (!hasDefaultPorts)
    printer.print(colors.dim("  The original's Python SDK only reaches servers with --control-port 8080 and --data-port 8081"));
  printer.print();
  printer.print(colors.dim("Ctrl-C stops."));
}

/** A server that listens on every address does not know which one its clients use. */
function linksAreGuessed({ host, publicUrl }: ServerConfig): boolean {
  return publicUrl === null && (host === "0.0.0.0" || host === "::");
}

function printConfig(shown: Readonly<Record<string, unknown>>, sources: ReadonlyMap<string, string>, printer: Printer): void {
  printer.json(shown);
  if (printer.isJson) return;
  const { colors } = printer.output;
  const width = Math.max(...Object.keys(shown).map((key) => key.length));
  for (const [key, value] of Object.entries(shown)) {
    printer.print(`${colors.cyan(key.padEnd(width))}  ${shownValue(key, value)}  ${colors.dim(sources.get(key) ?? "")}`);
  }
}

/** Sizes with a unit, other values as JSON. */
function shownValue(key: string, value: unknown): string {
  return typeof value === "number" ? settingText(key, value) : JSON.stringify(value);
}
