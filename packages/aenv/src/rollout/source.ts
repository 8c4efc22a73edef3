import { isObject, splitRef, type Task } from "@aenv/contract";
import { Environment, type EnvironmentOptions } from "@aenv/sdk";
import { callServer, openPlatform, type PlatformOptions } from "../platform/platform.ts";
import { findBuiltIn } from "../project/benchmarks.ts";
import { dataDir } from "../project/data-dir.ts";
import { loadTimeoutOption } from "../project/load-errors.ts";
import { findProject, readProject } from "../project/project.ts";
import { withSpinner } from "../terminal/spinner.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Where the instances of a run come from. */
export interface Source extends AsyncDisposable {
  /** `name@version`, with the version that was found. */
  readonly environment: string;
  readonly digest: string | null;
  readonly options: EnvironmentOptions;
  readonly isEmbedded: boolean;
}

export interface SourceOptions extends PlatformOptions {
  readonly var?: Readonly<Record<string, string>>;
  readonly ttl?: string;
  readonly loadTimeout: number;
}

export { loadTimeoutOption };

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
        dataDir: dataDir(terminal.env),
        onOutput: (text) => terminal.stderr.write(text),
      }),
    );
    const { environment, digest, controlUrl, dataUrl } = server;
    return {
      environment,
      digest,
      options: { ...common, controlUrl, dataUrl },
      isEmbedded: true,
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  }
  const platform = openPlatform(options, terminal);
  const record = await callServer(terminal, `Looking for ${named}`, () => platform.hub.get(named));
  return {
    environment: `${record.name}@${record.version}`,
    digest: digestIn(record.artifacts),
    options: { ...common, controlUrl: platform.url, apiKey: platform.apiKey },
    isEmbedded: false,
    [Symbol.asyncDispose]: async () => {},
  };
}

/** What `openSource` takes for an environment that a run has played: a built-in one of this version by its name, else `name@version`. */
export function sourceOfRun(environment: string, { systemUrl }: SourceOptions, cwd: string): string {
  const { name, version } = splitRef(environment);
  const folder = systemUrl === undefined ? findBuiltIn(name) : null;
  return folder !== null && readProject(folder, cwd).config.version === version ? folder : environment;
}

/** The tasks to be played: all, those of one split, or the named ones. */
export async function listTasks(
  source: Source,
  { split, task }: { split?: string; task?: readonly string[] },
  terminal: Terminal,
): Promise<Task[]> {
  const tasks = await callServer(terminal, "Listing the tasks", () =>
    Environment.use(source.environment, source.options, async (env) => env.tasks(split === undefined ? {} : { split })),
  );
  return task === undefined ? tasks : tasks.filter(({ id }) => task.includes(id));
}

function digestIn(artifacts: unknown): string | null {
  if (!Array.isArray(artifacts)) return null;
  const bundle = artifacts.find((one) => isObject(one) && one.type === "bundle");
  return isObject(bundle) && typeof bundle.content === "string" ? bundle.content : null;
}
