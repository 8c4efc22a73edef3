import { isObject, messageOf, splitRef } from "@aenv/contract";
import { DEFAULT_ENGINE } from "@aenv/sandbox/engines";
import type { EnvironmentOptions } from "@aenv/sdk";
import type { Command } from "commander";
import { collectPair } from "../options/pairs.ts";
import { callServer, openPlatform, type PlatformOptions } from "../platform/platform.ts";
import { findBuiltIn, nearestBuiltIn } from "../project/benchmarks.ts";
import { dataDir } from "../project/data-dir.ts";
import { loadTimeoutOption } from "../project/load-errors.ts";
import { findProject } from "../project/project.ts";
import { Failure, toFailure } from "../terminal/failure.ts";
import { withSpinner } from "../terminal/spinner.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { addEngineOption, type EngineOptions } from "./engine-option.ts";

/** Where the instances of a run come from. */
export interface Source extends AsyncDisposable {
  /** `name@version`, with the version that was found. */
  readonly environment: string;
  readonly digest: string | null;
  /** The project's folder; null for a built-in environment and for one on a server. */
  readonly folder: string | null;
  readonly deployConfig: Readonly<Record<string, unknown>>;
  readonly options: EnvironmentOptions;
  readonly isEmbedded: boolean;
}

export interface SourceOptions extends PlatformOptions, EngineOptions {
  readonly var?: Readonly<Record<string, string>>;
  readonly ttl?: string;
  readonly loadTimeout: number;
  /** The folder of the benchmarks' data, for a server inside of this command; that of the settings if not given. */
  readonly dataDir?: string;
}

/** The options of commands that play on instances; `variables` explains `--var`. */
export function addSourceOptions(command: Command, variables: string): Command {
  return addEngineOption(command)
    .option("-e, --var <KEY=VALUE>", variables, collectPair)
    .option("--ttl <duration>", "the lifetime of an instance")
    .addOption(loadTimeoutOption());
}

/**
 * A folder, or the name of a built-in environment without a version, is played on a server inside of this command. Everything else is
 * the name of an environment on the server that the options or settings name.
 */
export async function openSource(named: string, options: SourceOptions, terminal: Terminal): Promise<Source> {
  const { version } = splitRef(named);
  const common: EnvironmentOptions = { variables: options.var ?? {}, ...(options.ttl !== undefined && { ttl: options.ttl }) };
  // A path may contain an @, a name with a version contains no slash.
  const isLocal = (version === "" || named.includes("/")) && options.systemUrl === undefined;
  const project = isLocal ? findProject(named, terminal.cwd) : null;
  if (project !== null) {
    // Loaded only here: the server and the bundler take longer to load than all the rest.
    const { startEmbeddedServer } = await import("./embedded-server.ts");
    const server = await withSpinner(terminal, `Starting ${project.config.name}`, () =>
      startEmbeddedServer(project, {
        loadTimeoutMs: options.loadTimeout,
        dataDir: options.dataDir ?? dataDir(terminal.env),
        engine: options.engine ?? DEFAULT_ENGINE,
        env: terminal.env,
        onOutput: (text) => terminal.stderr.write(text),
      }),
    );
    const { environment, digest, controlUrl, dataUrl } = server;
    return {
      environment,
      digest,
      folder: project.root === findBuiltIn(project.config.name) ? null : project.root,
      deployConfig: project.config.deployConfig ?? {},
      options: { ...common, controlUrl, dataUrl },
      isEmbedded: true,
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  }
  if (options.engine !== undefined)
    throw new Failure(`--engine is for a server inside of this command, and ${named} is played on a server with an engine of its own`, {
      exit: "usage",
      hint: "Leave --engine out, or name a folder or a built-in environment without a version.",
    });
  const platform = openPlatform(options, terminal);
  const record = await callServer(terminal, `Looking for ${named}`, () => platform.hub.get(named)).catch((error: unknown) => {
    const nearest = isLocal ? nearestBuiltIn(named) : null;
    if (nearest === null) throw error;
    throw new Failure(messageOf(error), {
      hint: `Did you mean the built-in environment ${nearest}?`,
      exit: toFailure(error).exit,
      cause: error,
    });
  });
  return {
    environment: `${record.name}@${record.version}`,
    digest: digestIn(record.artifacts),
    folder: null,
    deployConfig: record.deploy_config ?? {},
    options: { ...common, controlUrl: platform.url, apiKey: platform.apiKey },
    isEmbedded: false,
    [Symbol.asyncDispose]: async () => {},
  };
}

/** The digest of the bundle, or the name of the image, which may have a digest in it. */
function digestIn(artifacts: unknown): string | null {
  if (!Array.isArray(artifacts)) return null;
  const contentOf = (type: string) => artifacts.find((one) => isObject(one) && one.type === type)?.content;
  const content: unknown = contentOf("bundle") ?? contentOf("image");
  return typeof content === "string" ? content : null;
}
