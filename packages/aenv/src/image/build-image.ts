import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { Failure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { type BuilderName, builderNames, findBuilders } from "./builder.ts";
import {
  buildCommand,
  type CommandLine,
  idCommand,
  isBuiltIntoRegistry,
  layoutCommand,
  pushCommand,
  saveCommand,
} from "./command-lines.ts";
import { openCredentials } from "./credentials.ts";
import { endOf } from "./output.ts";
import type { ImagePlan, RegistrySettings } from "./plan.ts";

export interface BuiltImage {
  readonly builder: BuilderName;
  /** Null for an image of several platforms, which is only in the registry. */
  readonly id: string | null;
}

export interface BuildInput {
  readonly plan: ImagePlan;
  readonly dockerfile: string;
  readonly context: string;
  readonly settings: RegistrySettings;
  readonly builder: BuilderName;
}

/** The builder that was asked for, or the best one of this machine. */
export async function chooseBuilder(wanted: BuilderName | undefined, plan: ImagePlan, terminal: Terminal): Promise<BuilderName> {
  const found = await findBuilders(terminal.env);
  const [builder] = wanted === undefined ? found : found.filter((name) => name === wanted);
  if (builder === undefined) {
    const hint = "Install Docker, buildah or podman; start Docker's engine, or set DOCKER_HOST. What works here: aenv doctor";
    throw new Failure(`there is no image builder here; ${wanted === undefined ? `none of ${builderNames.join(", ")}` : wanted} works`, {
      hint,
    });
  }
  if (isBuiltIntoRegistry(plan) && !(builder === "buildx" && plan.isPushed))
    throw new Failure(`an image for ${plan.platforms.join(" and ")} can only be built with buildx, and with --push`, {
      exit: "usage",
      hint: "Build one platform at a time, or install Docker with buildx and add --push.",
    });
  return builder;
}

/** Builds the image, and pushes it if the plan says so. The output of the builder is shown as progress. */
export async function buildImage({ plan, dockerfile, context, settings, builder }: BuildInput, terminal: Terminal): Promise<BuiltImage> {
  using credentials = openCredentials(plan.registry, settings, terminal.env);
  const run = async (command: CommandLine, purpose: string) =>
    execute({ ...command, variables: { ...credentials.variables, ...command.variables } }, purpose, terminal);
  const [first = ""] = plan.references;
  const containers = await workingContainers(builder, terminal);
  try {
    await run(buildCommand(builder, plan, dockerfile, context), `${first} could not be built`);
  } catch (error) {
    if (terminal.stopSignal().aborted) await removeContainers(containers, terminal);
    throw error;
  }
  if (isBuiltIntoRegistry(plan)) return { builder, id: null };
  const printed = (await run(idCommand(builder, first), `${first} could not be inspected`)).trim();
  // buildah and podman print only the digits.
  const id = printed.includes(":") ? printed : `sha256:${printed}`;
  if (plan.isPushed)
    for (const reference of plan.references) await run(pushCommand(builder, reference), `${reference} could not be pushed`);
  return { builder, id };
}

/** Writes an image of the builder as an archive of `docker save`. */
export async function saveImage(builder: BuilderName, reference: string, file: string, terminal: Terminal): Promise<void> {
  await execute(saveCommand(builder, reference, file), `${reference} could not be saved`, terminal);
}

/** Writes an image of buildah or podman into an OCI layout. */
export async function writeLayout(reference: string, id: string, layout: string, terminal: Terminal): Promise<void> {
  await execute(layoutCommand(id, layout), `${reference} could not be read from the builder`, terminal);
}

/** The containers in which buildah works; those of other builders end with the build. Null if they are not known. */
async function workingContainers(builder: BuilderName, { env }: Terminal): Promise<readonly string[] | null> {
  if (builder !== "buildah") return null;
  const listed = await promisify(execFile)("buildah", ["containers", "--quiet", "--notruncate"], { env }).catch(() => null);
  return listed?.stdout.split("\n").filter((id) => id !== "") ?? null;
}

/** Removes the containers of a build that was stopped: buildah leaves them, with their mounts, if it is stopped while it copies files. */
async function removeContainers(before: readonly string[] | null, terminal: Terminal): Promise<void> {
  if (before === null) return;
  const left = ((await workingContainers("buildah", terminal)) ?? []).filter((id) => !before.includes(id));
  if (left.length === 0) return;
  // They cannot be told apart from those of another build.
  if (await isBuilding(terminal))
    return terminal.stderr.write(`containers are left, as another build runs: buildah rm ${left.join(" ")}\n`);
  await promisify(execFile)("buildah", ["rm", ...left], { env: terminal.env }).catch(() => null);
}

/** Whether a builder runs that may share the storage of buildah. The own one has ended. */
async function isBuilding({ env }: Terminal): Promise<boolean> {
  const processes = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name));
  const shares = async (pid: string) => {
    const name = await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "");
    if (!/^(?:buildah|podman)$/.test(name.trim())) return false;
    // Null: it has ended, or belongs to another user, who may share the storage.
    const variables = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => null);
    return variables === null || storageIn(variables.split("\0")) === env[STORAGE_VARIABLE];
  };
  return (await Promise.all(processes.map(shares))).includes(true);
}

/** The variable that names another storage than the usual one. */
const STORAGE_VARIABLE = "CONTAINERS_STORAGE_CONF";

function storageIn(variables: readonly string[]): string | undefined {
  return variables.find((one) => one.startsWith(`${STORAGE_VARIABLE}=`))?.slice(STORAGE_VARIABLE.length + 1);
}

/** Docker's own builder, unless it stores images with containerd. */
const ONE_PLATFORM = /platforms?\b.* not supported for (?:the )?docker driver/i;
const SEVERAL_PLATFORMS_HINT = "Docker's own builder builds one platform. Create one that builds several: docker buildx create --use";

/** Runs a program to its end and returns its output, which is also printed while it runs. */
async function execute({ program, args, variables }: CommandLine, purpose: string, terminal: Terminal): Promise<string> {
  const signal = terminal.stopSignal();
  signal.throwIfAborted();
  const child = spawn(program, args, { env: { ...terminal.env, ...variables }, stdio: ["ignore", "pipe", "pipe"] });
  const stop = () => child.kill("SIGTERM");
  signal.addEventListener("abort", stop);
  let [stdout, last] = ["", ""];
  const show = (text: string) => {
    last = (last + text).slice(-4_000);
    if (args[1] !== "inspect" && args[0] !== "inspect") terminal.stderr.write(terminal.stderr.colors.dim(text));
  };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    show(text);
  });
  child.stderr.setEncoding("utf8").on("data", show);
  const [code] = await once(child, "close")
    .catch((error: unknown) => {
      throw new Failure(`${purpose}: ${(error as Error).message}`, { cause: error });
    })
    .finally(() => signal.removeEventListener("abort", stop));
  // Not before the program has ended, which removes what it has made.
  if (signal.aborted) throw new Failure("stopped", { exit: "cancelled" });
  if (code === 0) return stdout;
  throw new Failure(`${purpose}: ${endOf(last)}`, { hint: ONE_PLATFORM.test(last) ? SEVERAL_PLATFORMS_HINT : undefined });
}
