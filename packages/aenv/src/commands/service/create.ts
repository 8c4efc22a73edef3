import { type CreateServiceRequest, formatRef, isObject, splitRef, variableProblem } from "@aenv/contract";
import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { collectPair } from "../../options/pairs.ts";
import { integer } from "../../options/values.ts";
import { addPlatformOptions, callServer, nextCommand, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { serviceFacts } from "../../platform/service-view.ts";
import { readProject } from "../../project/project.ts";
import { Failure } from "../../terminal/failure.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions, FormatOptions {
  readonly serviceName?: string;
  readonly replicas?: number;
  readonly port?: number;
  readonly env?: Record<string, string>;
  readonly enableStorage?: boolean;
  readonly storageSize?: string;
  readonly storageName?: string;
  readonly owner?: string;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("start a service")
    .description(
      "Starts a service: replicas of a published environment that are kept alive, behind one address. Values that are not given come from deployConfig.service of ./config.json, if it is the config of this environment.",
    )
    .argument("[environment]", "name or name@version; that of ./config.json if not given")
    .option("-s, --service-name <name>", "the service's name; generated if not given")
    .option("-r, --replicas <number>", "the number of replicas; 1 if not given", integer(1, 1_000))
    .option("-p, --port <number>", "the port of its containers, for servers that run containers", integer(1, 65_535))
    .option("-e, --env <KEY=VALUE>", "a variable for its replicas; may be repeated", collectPair)
    .option("--enable-storage", "give it persistent storage; then it has one replica only")
    .option("--storage-size <size>", "the size of the storage, for servers that limit it, e.g. 10Gi")
    .option("--storage-name <name>", "the storage's name; services of one owner with the same name share it")
    .option("--owner <owner>", "its owner, if the server needs no token; the setting owner if not given");
  addPlatformOptions(addOutputOption(command))
    .addHelpText(
      "after",
      examples(
        "aenv service create my-env --replicas 2",
        "aenv service create my-env@1.0.0 --service-name tools --env DEBUG=1",
        "aenv service create my-env --enable-storage --storage-size 10Gi",
      ),
    )
    .action((ref: string | undefined, options: Options) => create(ref, options, terminal));
}

async function create(given: string | undefined, options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const platform = openPlatform(options, terminal);
  const { ref, deploy } = projectFor(given, terminal);
  const request = requestOf(ref, options, deploy, options.owner ?? platform.owner);
  const made = await callServer(terminal, `Starting ${ref}`, () => platform.services.create(request));
  printer.json(made);
  if (printer.isJson) return;
  const { colors } = printer.output;
  printer.print(`${colors.green("✔")} ${colors.bold(made.id)} is being started`);
  printer.print();
  printer.print(serviceFacts(made, printer.output));
  printer.print();
  printer.print(`  ${colors.dim("Check its status with:")} ${nextCommand(`aenv service get ${made.id}`, options, colors)}`);
}

type DeployConfig = Readonly<Record<string, unknown>>;

/** The environment, and its deployConfig if its project is in this folder. */
function projectFor(given: string | undefined, terminal: Terminal): { ref: string; deploy: DeployConfig } {
  if (given === undefined) {
    const { config } = readProject(".", terminal.cwd);
    return { ref: formatRef(config), deploy: config.deployConfig ?? {} };
  }
  try {
    const { config } = readProject(".", terminal.cwd);
    const { name, version } = splitRef(given);
    const isThis = name === config.name && (version === "" || version === config.version);
    return { ref: given, deploy: isThis ? (config.deployConfig ?? {}) : {} };
  } catch {
    return { ref: given, deploy: {} };
  }
}

/** The options override `deployConfig.service`, which overrides `deployConfig`, as in the original's command. */
export function requestOf(ref: string, options: Options, deploy: DeployConfig, owner: string | null): CreateServiceRequest {
  const service = isObject(deploy.service) && Object.keys(deploy.service).length > 0 ? deploy.service : deploy;
  const replicas = options.replicas ?? numberOf(service.replicas) ?? 1;
  const port = options.port ?? numberOf(service.port);
  const variables = { ...variablesOf(deploy.environmentVariables), ...options.env };
  const hasStorage = options.enableStorage === true || service.enableStorage === true;
  const size = options.storageSize ?? textOf(service.storageSize);
  if (hasStorage && size === undefined) {
    throw new Failure("storage needs a size", { exit: "usage", hint: "Write it as: --enable-storage --storage-size 10Gi" });
  }
  if (hasStorage && replicas !== 1) {
    throw new Failure(`a service with storage has one replica, not ${replicas}`, { exit: "usage", hint: "Write it as: --replicas 1" });
  }
  const name = options.storageName ?? textOf(service.storageName);
  const mountPath = textOf(service.mountPath);
  return {
    envName: ref,
    replicas,
    ...(options.serviceName !== undefined && { service_name: options.serviceName }),
    ...(port !== undefined && { port }),
    ...(Object.keys(variables).length > 0 && { environment_variables: variables }),
    ...(owner && { owner }),
    ...(hasStorage && { storage_size: size, ...(name && { pvc_name: name }), ...(mountPath && { mount_path: mountPath }) }),
    ...limitsOf(deploy),
  };
}

/** Resource limits, for servers that run containers. */
function limitsOf(deploy: DeployConfig): Partial<CreateServiceRequest> {
  const limits = {
    cpu_request: textOf(deploy.cpuRequest) ?? textOf(deploy.cpu),
    cpu_limit: textOf(deploy.cpuLimit) ?? textOf(deploy.cpu),
    memory_request: textOf(deploy.memoryRequest) ?? textOf(deploy.memory),
    memory_limit: textOf(deploy.memoryLimit) ?? textOf(deploy.memory),
    ephemeral_storage_request: textOf(deploy.ephemeralStorageRequest) ?? textOf(deploy.ephemeralStorage),
    ephemeral_storage_limit: textOf(deploy.ephemeralStorageLimit) ?? textOf(deploy.ephemeralStorage),
  };
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined));
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The variables that a caller may set. The server takes the others from the published config, because only the publisher may set them. */
function variablesOf(value: unknown): Record<string, string> {
  if (!isObject(value)) return {};
  const variables = Object.entries(value).map(([name, one]) => [name, String(one)] as const);
  return Object.fromEntries(variables.filter(([name, one]) => variableProblem(name, one, "caller") === null));
}
