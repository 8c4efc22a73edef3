import { resolve } from "node:path";
import { type EngineName, engines } from "@aenv/sandbox/engines";
import { type Command, Option } from "commander";
import { loadSource } from "../../image/source.ts";
import { examples } from "../../options/examples.ts";
import { imageEngines } from "../../rollout/engine-option.ts";
import { Failure } from "../../terminal/failure.ts";
import { createPrinter } from "../../terminal/printer.ts";
import { withSpinner } from "../../terminal/spinner.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options {
  readonly name?: string;
  readonly engine?: EngineName;
  readonly home?: string;
  readonly imageStore?: string;
  readonly config?: string;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("take an image that is in no registry into a server's store")
    .description(
      "Takes an image of the Docker daemon, an OCI layout or an archive into the store of a server's engine, under a name that environments use. Run it on the server's machine, as the server's user. The server may be running or stopped.",
    )
    .argument("<source>", "docker-daemon:NAME, oci:FOLDER[:NAME], or the path of an archive of docker save")
    .option("--name <name>", "the name of the image, as config.json names it; that of the source if not given")
    .addOption(new Option("--engine <engine>", "the server's engine; that of its settings if not given, else oci").choices(imageEngines))
    .option("--home <folder>", "the server's home folder [$AENV_HOME]")
    .option("--image-store <folder>", "the server's setting imageStore, if it has one [$AENV_IMAGE_STORE]")
    .option("-c, --config <file>", "the server's config file, if it has one")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      examples(
        "aenv image load docker-daemon:my-env:1.0.0",
        "aenv image load my-env.tar --name my-env:1.0.0 --home /srv/aenv",
        "aenv image load oci:./layout:1.0.0 --name my-env:1.0.0",
      ),
    )
    .action((source: string, options: Options) => load(source, options, terminal));
}

async function load(text: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const { source, name: own } = loadSource(text, terminal.cwd);
  const name = options.name ?? own;
  if (name === null)
    throw new Failure(`${text} does not say the name of the image`, {
      exit: "usage",
      hint: `Give the name that config.json has in artifacts, such as: aenv image load ${text} --name my-env:1.0.0`,
    });
  // Loaded only here: engines and the server take long to load.
  const [{ imageName }, { readServerConfig }] = await Promise.all([import("@aenv/sandbox"), import("@aenv/server")]);
  const image = imageName(name);
  const { home, imageStore, config: file } = options;
  const config = readServerConfig({
    flags: {
      ...(home !== undefined && { home: resolve(terminal.cwd, home) }),
      ...(imageStore !== undefined && { imageStore: resolve(terminal.cwd, imageStore) }),
    },
    variables: terminal.env,
    ...(file !== undefined && { file: resolve(terminal.cwd, file) }),
  });
  const engine = options.engine ?? (imageEngines.includes(config.engine) ? config.engine : "oci");
  const daemonSocket = socketOf(terminal.env.DOCKER_HOST) ?? config.dockerSocket;
  const opening = engines[engine].openImages?.(config, { daemonSocket });
  if (opening === undefined) throw new Error(`the engine ${engine} stores no images`);
  await using store = await opening;
  await withSpinner(terminal, `Loading ${image}`, () => store.load(image, source, terminal.stopSignal()));
  const { place } = store;
  printer.json({ image, source, engine, place });
  const { colors } = printer.output;
  printer.print(`${colors.green("✔")} ${colors.bold(image)} ${colors.dim(`is loaded for the engine ${engine}, in ${place}`)}`);
}

/** The socket of `DOCKER_HOST`; null if it is not set, or an address that is no socket. */
function socketOf(host: string | undefined): string | null {
  return /^unix:\/\/(.+)$/.exec(host ?? "")?.[1] ?? null;
}
