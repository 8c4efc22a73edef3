import { isTable } from "../fields/containers.ts";
import { type ComposeFile, environmentOf, listOf } from "./compose.ts";

/** What a compose file with one simple service says about its image. */
export interface PlainBuild {
  /** Relative to the task's folder. */
  readonly context: string;
  /** Relative to the context. */
  readonly dockerfile: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly workdir: string | null;
  readonly entrypoint: readonly string[] | null;
  readonly platform: string | null;
  /** A prebuilt image, if nothing is built. */
  readonly image: string | null;
}

const SIMPLE = new Set([
  "build",
  "image",
  "container_name",
  "command",
  "volumes",
  "environment",
  "working_dir",
  "expose",
  "entrypoint",
  "platform",
]);
const LOG_VOLUME = /^\$\{?T_BENCH_TASK_(?:AGENT_)?LOGS_PATH\}?:/;

/** The service in which the agent works: `client`, else the first one. */
export function mainService({ services }: ComposeFile): string {
  const names = Object.keys(services);
  return names.includes("client") ? "client" : (names[0] ?? "client");
}

/** The plain build of a compose file of Terminal-Bench 1, or null if the file needs compose. */
export function plainBuild(file: ComposeFile): PlainBuild | null {
  const names = Object.keys(file.services);
  const service = file.services[mainService(file)];
  if (names.length !== 1 || service === undefined) return null;
  if (Object.keys(file.document).some((key) => key !== "services" && key !== "version")) return null;
  if (Object.keys(service).some((key) => !SIMPLE.has(key))) return null;
  if (!listOf(service.volumes).every((volume) => LOG_VOLUME.test(String(volume)))) return null;
  const { build, working_dir, entrypoint, platform, image } = service;
  const table = isTable(build) ? build : { context: build };
  const { TEST_DIR: _, ...environment } = environmentOf(service);
  return {
    context: typeof table.context === "string" ? table.context : ".",
    dockerfile: typeof table.dockerfile === "string" ? table.dockerfile : "Dockerfile",
    environment,
    workdir: typeof working_dir === "string" && !working_dir.includes("${") ? working_dir : null,
    entrypoint: typeof entrypoint === "string" ? ["/bin/sh", "-c", entrypoint] : Array.isArray(entrypoint) ? entrypoint.map(String) : null,
    platform: typeof platform === "string" ? platform : null,
    image: build === undefined && typeof image === "string" ? image : null,
  };
}

/** Files of a task that an image sees only if its Dockerfile names them. */
const HIDDEN = ["task.yaml", "solution.sh", "solution.yaml", "run-tests.sh", "tests", "docker-compose.yaml"];

/** The hidden files that a Dockerfile copies: a task whose image contains its tests leaks them. */
export function copiedHiddenFiles(dockerfile: string): string[] {
  const copies = dockerfile
    .replace(/\\\n/g, " ")
    .split("\n")
    .filter((line) => /^\s*(?:COPY|ADD)\s/i.test(line));
  const sources = copies.flatMap((line) =>
    line
      .trim()
      .split(/\s+/)
      .slice(1, -1)
      .map((source) => source.replace(/^["[]+|["\],]+$/g, "").replace(/^\.\//, "")),
  );
  return HIDDEN.filter((name) => sources.some((source) => source === name || source.startsWith(`${name}/`)));
}

export function hiddenFiles(dockerfile: string): string[] {
  const copied = new Set(copiedHiddenFiles(dockerfile));
  return HIDDEN.filter((name) => !copied.has(name));
}
